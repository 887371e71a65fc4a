"""Reading, grouping, joining, time zones, and files of every kind that pandas writes without help."""

import io
import sqlite3

import numpy as np
import pandas as pd

csv = "city,month,rain\nOslo,2026-01,49.1\nOslo,2026-02,36.2\nRome,2026-01,66.9\nRome,2026-02,\n"
df = pd.read_csv(io.StringIO(csv), parse_dates=["month"])
assert df.dtypes.rain == "float64" and df.rain.isna().sum() == 1
df["rain"] = df.groupby("city").rain.transform(lambda rain: rain.fillna(rain.mean()))
means = df.groupby("city").rain.agg(["mean", "max"])
assert means.loc["Rome", "mean"] == 66.9
wide = df.pivot_table(index="month", columns="city", values="rain")
assert list(wide.columns) == ["Oslo", "Rome"]
joined = df.merge(pd.DataFrame({"city": ["Oslo", "Rome"], "country": ["NO", "IT"]}), on="city")
assert set(joined.country) == {"NO", "IT"}

hours = pd.date_range("2026-03-28", periods=72, freq="h", tz="UTC").tz_convert("Europe/Berlin")
series = pd.Series(np.arange(72.0), index=hours)
assert series.resample("D").sum().shape == (4,)
assert hours[30].utcoffset().total_seconds() == 7200
assert series.rolling(3).mean().iloc[-1] == 70

with sqlite3.connect(":memory:") as connection:
    df.to_sql("rain", connection, index=False)
    back = pd.read_sql("select city, sum(rain) as total from rain group by city", connection)
assert len(back) == 2

book = io.BytesIO()
with pd.ExcelWriter(book) as writer:
    df.to_excel(writer, sheet_name="rain", index=False)
again = pd.read_excel(io.BytesIO(book.getvalue()), sheet_name="rain")
assert list(again.city) == list(df.city)

assert len(pd.read_json(io.StringIO(df.to_json(orient="records")))) == 4
assert "<table" in df.to_html() and df.to_markdown is not None
assert df.describe().loc["count", "rain"] == 4

df.sort_values("rain").city.tolist()
