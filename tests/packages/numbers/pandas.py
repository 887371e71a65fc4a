"""Reads CSV, fills gaps, groups and pivots."""

import io

import pandas as pd

csv = "city,month,rain\nOslo,2026-01,49.1\nOslo,2026-02,36.2\nRome,2026-01,66.9\nRome,2026-02,\n"
df = pd.read_csv(io.StringIO(csv), parse_dates=["month"])
df["rain"] = df.groupby("city").rain.transform(lambda rain: rain.fillna(rain.mean()))
table = df.pivot_table(index="city", columns="month", values="rain")
assert table.shape == (2, 2) and table.loc["Rome", "2026-02-01"] == 66.9
