"""Finds the nearest of some vectors."""

import faiss
import numpy as np

index = faiss.IndexFlatL2(2)
index.add(np.eye(2, dtype="float32"))
assert index.search(np.array([[0.9, 0.1]], dtype="float32"), 1)[1] == [[0]]
