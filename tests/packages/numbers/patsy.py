"""Makes the matrices of a formula with a category."""

import numpy as np
from patsy import dmatrices

data = {"y": [1.0, 2.0, 3.0], "x": [1.0, 4.0, 9.0], "kind": ["a", "b", "a"]}
y, x = dmatrices("y ~ np.sqrt(x) + kind", data)
assert x.design_info.column_names == ["Intercept", "kind[T.b]", "np.sqrt(x)"]
assert np.array_equal(x[:, 2], [1, 2, 3])
