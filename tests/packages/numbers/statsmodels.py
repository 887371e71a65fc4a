"""Fits a linear regression."""

import numpy as np
import statsmodels.api as sm

x = np.arange(20.0)
fitted = sm.OLS(3 * x + 1, sm.add_constant(x)).fit()
assert np.allclose(fitted.params, [1, 3])
