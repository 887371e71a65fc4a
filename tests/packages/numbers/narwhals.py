"""Groups a table of pandas by an interface that other libraries share."""
# With: pandas

import narwhals as nw
import pandas as pd

df = nw.from_native(pd.DataFrame({"city": ["Oslo", "Rome", "Oslo"], "rain": [49.0, 66.0, 36.0]}))
sums = df.group_by("city").agg(nw.col("rain").sum()).sort("city").to_native()
assert sums.rain.tolist() == [85.0, 66.0]
