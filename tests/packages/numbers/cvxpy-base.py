"""Finds the nonnegative weights that fit best."""

import cvxpy as cp
import numpy as np

x = cp.Variable(2)
cost = cp.sum_squares(np.array([[1.0, 0.0], [0.0, 2.0]]) @ x - np.array([1.0, -2.0]))
cp.Problem(cp.Minimize(cost), [x >= 0]).solve()
assert np.allclose(x.value, [1, 0], atol=1e-3)
