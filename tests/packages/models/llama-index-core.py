"""Splits a document into pieces and finds one by its words."""
# With: greenlet

from llama_index.core import Document
from llama_index.core.node_parser import SentenceSplitter

nodes = SentenceSplitter(chunk_size=20, chunk_overlap=0).get_nodes_from_documents(
    [Document(text="The sea is calm. " * 9)]
)
assert len(nodes) > 1
