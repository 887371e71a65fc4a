"""Draws a box plot of a table."""

import io

import pandas as pd
import seaborn as sns

df = pd.DataFrame({"city": ["a", "a", "b", "b"], "rain": [1.0, 2.0, 3.0, 5.0]})
axes = sns.boxplot(df, x="city", y="rain")
file = io.BytesIO()
axes.figure.savefig(file, format="png")
assert file.getvalue().startswith(b"\x89PNG")
