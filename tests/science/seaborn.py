"""Statistical plots, on pandas and matplotlib together."""

import io

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

rng = np.random.default_rng(5)
df = pd.DataFrame({"group": list("ab") * 50, "x": rng.normal(size=100), "y": rng.normal(size=100)})
sns.set_theme()
for draw in (sns.boxplot, sns.violinplot, sns.barplot):
    draw(df, x="group", y="y")
    plt.clf()
grid = sns.pairplot(df, hue="group")
file = io.BytesIO()
grid.savefig(file)
assert file.getvalue()[:4] == b"\x89PNG"
sns.heatmap(df[["x", "y"]].corr(), annot=True)
plt.close("all")

"plotted"
