"""Computes moving averages and an index of strength of prices."""

import pandas as pd
import pandas_ta_classic as ta

prices = pd.Series([float(n % 7 + n) for n in range(40)])
assert ta.sma(prices, length=2).iloc[-1] == prices.iloc[-2:].mean()
assert 0 <= ta.rsi(prices).iloc[-1] <= 100
