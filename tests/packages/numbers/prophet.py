"""Forecasts a trend."""

import pandas as pd
from prophet import Prophet

df = pd.DataFrame({"ds": pd.date_range("2026-01-01", periods=30), "y": range(30)})
model = Prophet().fit(df)
assert 29 < model.predict(model.make_future_dataframe(5)).yhat.iloc[-1] < 39
