"""Evaluates an expression of arrays."""

import numexpr
import numpy as np

a = np.arange(5.0)
assert numexpr.evaluate("2 * a + 1").tolist() == [1, 3, 5, 7, 9]
