"""Reads a CSV file, cleans it, groups, plots, saves an Excel file: as a model writes it."""

import matplotlib.pyplot as plt
import pandas as pd

df = pd.read_csv("/data/sales.csv", parse_dates=["day"], na_values=["n/a"])
missing = df["sold"].isna().sum()
df = df.dropna(subset=["sold"])
print(f"cleaned {missing} rows")

df["revenue"] = df["sold"] * df["price"]
summary = df.groupby("city", as_index=False)["revenue"].sum()

plt.figure(figsize=(6, 4))
plt.bar(summary["city"], summary["revenue"])
plt.title("Revenue")
plt.ylabel("EUR")
plt.show()

summary.to_excel('report.xlsx', index=False)
summary
