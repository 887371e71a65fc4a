"""Stores texts and finds the nearest by their vectors."""
# With: onnxruntime

import chromadb

notes = chromadb.EphemeralClient().create_collection("notes")
notes.add(ids=["a", "b"], embeddings=[[1.0, 0.0], [0.0, 1.0]], documents=["sea", "land"])
assert notes.query([[0.9, 0.1]], n_results=1)["documents"] == [["sea"]]
