"""Draws points and a line from a table."""

import io

import pandas as pd
from plotnine import aes, geom_line, geom_point, ggplot

df = pd.DataFrame({"x": [1, 2, 3], "y": [1, 4, 9]})
file = io.BytesIO()
(ggplot(df, aes("x", "y")) + geom_point() + geom_line()).save(file, format="png", verbose=False)
assert file.getvalue().startswith(b"\x89PNG")
