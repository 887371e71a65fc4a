"""Differentiates a function of numpy."""

import autograd.numpy as np
from autograd import grad

slope = grad(lambda x: np.sum(np.tanh(x) ** 2))
x = np.array([0.0, 0.5])
assert np.allclose(slope(x), 2 * np.tanh(x) / np.cosh(x) ** 2)
