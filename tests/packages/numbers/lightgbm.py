"""Fits boosted trees to a step."""

import lightgbm
import numpy as np

x = np.arange(100.0).reshape(-1, 1)
model = lightgbm.LGBMRegressor(n_estimators=50, verbose=-1).fit(x, x[:, 0] > 49)
assert model.predict([[2.0]])[0] < 0.1 and model.predict([[90.0]])[0] > 0.9
