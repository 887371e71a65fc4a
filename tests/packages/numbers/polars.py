"""Groups and sums."""

import polars as pl

df = pl.DataFrame({"city": ["a", "b", "a"], "rain": [1, 2, 3]})
assert df.group_by("city").agg(pl.sum("rain")).sort("city")["rain"].to_list() == [4, 2]
