"""Fits boosted trees to a step."""

import numpy as np
import xgboost

x = np.arange(20.0).reshape(-1, 1)
model = xgboost.XGBRegressor(n_estimators=20).fit(x, x[:, 0] > 9)
assert model.predict([[2.0]])[0] < 0.1 and model.predict([[15.0]])[0] > 0.9
