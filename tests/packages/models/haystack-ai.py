"""Finds a text by its words, in a pipeline."""
# With: jsonschema<4.18

from haystack import Document, Pipeline
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

store = InMemoryDocumentStore()
store.write_documents([Document(content="The sea is calm"), Document(content="A dog ran home")])
pipeline = Pipeline()
pipeline.add_component("find", InMemoryBM25Retriever(store, top_k=1))
assert pipeline.run({"find": {"query": "dog"}})["find"]["documents"][0].content == "A dog ran home"
