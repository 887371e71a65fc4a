"""Makes the matrix of a formula with an interaction."""

import pandas as pd
from formulaic import model_matrix

df = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "x"]})
matrix = model_matrix("a * b", df)
assert list(matrix.columns) == ["Intercept", "a", "b[T.y]", "a:b[T.y]"]
assert matrix["a:b[T.y]"].tolist() == [0, 2, 0]
