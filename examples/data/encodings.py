"""CSV in odd encodings.

Finds the encoding and the separator of two German exports, cleans them, and adds up the months.
"""

import codecs
import csv
from io import StringIO
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd


def decode(raw):
    """Return the text of a file, and the encoding that it is in."""
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return raw.decode("utf-16"), "utf-16"
    try:
        return raw.decode("utf-8-sig"), "utf-8"
    except UnicodeDecodeError:
        return raw.decode("cp1252"), "cp1252"


def read_export(path):
    text, encoding = decode(Path(path).read_bytes())
    lines = text.splitlines()
    # Titles may come before the table.
    start = next(i for i, line in enumerate(lines) if line.startswith("Datum"))
    table = "\n".join(lines[start:])
    separator = csv.Sniffer().sniff(table, delimiters=";\t,").delimiter
    df = pd.read_csv(
        StringIO(table), sep=separator, decimal=",", thousands=".", na_values=["k. A."],
        dtype={"Datum": "str"},
    )
    print(f"{path}: {encoding}, separator {separator!r}, {start} lines before the table, "
          f"{len(df)} rows")
    return df


df = pd.concat([read_export("sales_2025.csv"), read_export("sales_2026.csv")], ignore_index=True)
df.columns = ["date", "city", "article", "quantity", "revenue"]

# Clean: totals without a date, missing amounts, and city names in several spellings.
df["date"] = pd.to_datetime(df["date"], format="%d.%m.%Y", errors="coerce")
totals = df["date"].isna()
missing = df["revenue"].isna()
df = df[~totals & ~missing].copy()
df["city"] = df["city"].str.strip().str.title()
print(f"dropped {totals.sum()} total and {missing.sum()} rows without an amount")

monthly = df.pivot_table(
    index=df["date"].dt.to_period("M"), columns="city", values="revenue", aggfunc="sum"
)
print()
print(monthly.round(2).to_string())
print()
print(df.groupby("article")[["quantity", "revenue"]].sum().sort_values("revenue"))

ax = monthly.plot.bar(stacked=True, figsize=(7, 3.6), width=0.8)
ax.set_title("Möbelhaus Größe & Söhne: Umsatz in €")
ax.set_xlabel("")
ax.yaxis.set_major_formatter("{x:,.0f} €")
ax.legend(title=None, ncols=4, fontsize="small")
ax.set_ylim(0, monthly.sum(axis=1).max() * 1.15)
plt.xticks(rotation=45)
plt.tight_layout()
plt.show()
