"""Charts.

Draws small multiples with pandas and seaborn, and saves some as PNG, JPEG, WebP, SVG and PDF.
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
rain = monthly.pivot(index="month", columns="city", values="rain_mm")
rain.plot.bar(subplots=True, layout=(1, 4), figsize=(7, 2), xticks=[0, 6], legend=False)
for extension in ("png", "jpg", "webp", "svg", "pdf"):
    plt.savefig(f"rain.{extension}")
plt.close()
print()
for path in sorted(Path().glob("rain.*")):
    print(f"{path.name:<9}", path.read_bytes()[:4])

# Of seaborn: the same panels.
sns.set_theme(style="ticks", palette="colorblind", font_scale=0.8)
grid = sns.relplot(
    df, x="month", y="temperature_c", col="city", hue="city", kind="line", errorbar="sd",
    height=2.4, aspect=0.8, legend=False,
)
grid.set_titles("{col_name}").set_axis_labels("month", "temperature, °C")
plt.show()
