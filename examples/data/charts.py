"""Charts.

Draws small multiples with pandas and seaborn, and saves one of them as PNG, JPEG, WebP, SVG and
PDF.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns

df = pd.read_csv("weather.csv", parse_dates=["date"])
df["month"] = df["date"].dt.month
monthly = df.groupby(["city", "month"], as_index=False).agg(
    temperature_c=("temperature_c", "mean"), rain_mm=("rain_mm", "sum")
)
print(monthly.pivot(index="month", columns="city", values="temperature_c").round(1).T.to_string())

# Of pandas: one panel for each city.
wide = df.pivot(index="date", columns="city", values="temperature_c").rolling(5).mean()
axes = wide.plot(subplots=True, layout=(2, 2), figsize=(7, 4), sharey=True, title="°C")
for extension in ("png", "jpg", "webp", "svg", "pdf"):
    axes[0, 0].figure.savefig(f"temperature.{extension}")
plt.close()
print()
for path in sorted(Path().glob("temperature.*")):
    print(path.name, path.read_bytes()[:8])

# Of seaborn.
sns.set_theme(style="whitegrid", font_scale=0.8)
grid = sns.FacetGrid(monthly, col="city", hue="city", height=2.8, aspect=0.7)
grid.map_dataframe(sns.barplot, x="month", y="rain_mm", native_scale=True, alpha=0.4)
for axes, (_, city) in zip(grid.axes.flat, monthly.groupby("city")):
    right = axes.twinx()
    sns.lineplot(city, x="month", y="temperature_c", ax=right, color="tab:red", marker="o")
    right.set(ylim=(-5, 35), ylabel="°C" if axes is grid.axes.flat[-1] else "")
    right.grid(False)
grid.set_axis_labels("month", "rain, mm").set_titles("{col_name}")
grid.figure.tight_layout()
plt.show()
