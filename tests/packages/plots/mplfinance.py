"""Draws a chart of prices with volumes."""
# With: six

import io

import mplfinance as mpf
import pandas as pd

days = pd.date_range("2026-01-01", periods=5)
df = pd.DataFrame({"Open": 1.0, "High": 3.0, "Low": 0.5, "Close": 2.0, "Volume": 9}, index=days)
file = io.BytesIO()
mpf.plot(df, type="candle", volume=True, savefig=file)
assert file.getvalue().startswith(b"\x89PNG")
