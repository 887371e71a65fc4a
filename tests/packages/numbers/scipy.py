"""Minimizes a function, integrates, and solves a sparse system."""

import numpy as np
from scipy import integrate, optimize, sparse
from scipy.sparse.linalg import spsolve

assert np.allclose(optimize.minimize(optimize.rosen, [1.3, 0.7, 0.8]).x, 1, atol=1e-3)
assert np.isclose(integrate.quad(np.sin, 0, np.pi)[0], 2)
matrix = sparse.diags([2.0, 4.0, 8.0]).tocsc()
assert np.allclose(spsolve(matrix, np.ones(3)), [0.5, 0.25, 0.125])
