"""A data analysis: the sandbox gets a CSV file, and gives back a table, a picture and a file.

The code that runs in the sandbox is what a model would write; here it is written down below, so no
key is needed. By default it uses the standard library and draws an SVG, which needs no network.

    pip install target/wheels/isolet-*.whl    # of `cargo xtask wheel`, until it is published
    python examples/data_analysis.py

With `--pandas` it uses pandas and matplotlib. isolet then fetches their builds for WebAssembly,
from the package index and Pyodide's server, once. `--wheels DIR` names a directory with such
builds. The files are written to `analysis`, or where `--output` says.
"""

from __future__ import annotations

import argparse
from pathlib import Path, PurePosixPath

import isolet

STANDARD = """\
import csv, statistics
from collections import defaultdict

revenue, dropped = defaultdict(list), 0
with open("sales.csv") as file:
    for row in csv.DictReader(file):
        if row["sold"] == "n/a":
            dropped += 1
        else:
            revenue[row["city"]].append(int(row["sold"]) * float(row["price"]))
print(f"dropped {dropped} rows without a number")

summary = {city: (sum(days), statistics.median(days)) for city, days in sorted(revenue.items())}
with open("summary.csv", "w", newline="") as file:
    writer = csv.writer(file, lineterminator="\\n")
    writer.writerow(["city", "total", "median"])
    writer.writerows([city, *numbers] for city, numbers in summary.items())
for city, (total, median) in summary.items():
    print(f"{city:8} {total:10.2f} {median:8.2f}")

highest = max(total for total, _ in summary.values())
bars = ""
for at, (city, (total, _)) in enumerate(summary.items()):
    height = 200 * total / highest
    bars += f'<rect x="{60 + at * 90}" y="{230 - height}" width="60" height="{height}"/>'
    bars += f'<text x="{90 + at * 90}" y="250" text-anchor="middle">{city}</text>'
    bars += f'<text x="{90 + at * 90}" y="{224 - height}" text-anchor="middle">{total:.0f}</text>'
svg = f'''<svg xmlns="http://www.w3.org/2000/svg" width="450" height="270" fill="#226"
 font-family="sans-serif" font-size="14"><rect width="450" height="270" fill="white"/>
<text x="20" y="20">Revenue in EUR</text>{bars}</svg>'''
display({"image/svg+xml": svg, "text/plain": "Revenue in EUR"}, raw=True)

max(summary, key=lambda city: summary[city][0])
"""

PANDAS = """\
import matplotlib.pyplot as plt
import pandas as pd

df = pd.read_csv("sales.csv", na_values=["n/a"])
print(f"dropped {df['sold'].isna().sum()} rows without a number")
df = df.dropna(subset=["sold"])
df["revenue"] = df["sold"] * df["price"]
summary = df.groupby("city")["revenue"].agg(total="sum", median="median")
summary.to_csv("summary.csv")
print(summary.round(2))

plt.bar(summary.index, summary["total"])
plt.title("Revenue in EUR")
plt.show()

summary["total"].idxmax()
"""

SUFFIXES = {
    "image/png": ".png",
    "image/svg+xml": ".svg",
    "text/html": ".html",
    "application/vnd.isolet.chart.v1+json": ".chart.json",
}


def sales() -> str:
    """Makes the data: 400 rows, of which some lack a number."""
    rows = ["day,city,sold,price"]
    for day in range(100):
        for at, city in enumerate(["Bergen", "Genoa", "Lisbon", "Riga"]):
            number = (day * 7 + at * 13) % 23 + at * 5
            sold = "n/a" if (day + at * 11) % 37 == 0 else str(number)
            rows.append(f"{day},{city},{sold},{1.5 + at * 0.25}")
    return "\n".join(rows) + "\n"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Analyses sales in a sandbox.")
    parser.add_argument("--pandas", action="store_true", help="use pandas and matplotlib")
    parser.add_argument("--wheels", action="append", default=[], help="a directory with builds")
    parser.add_argument("--output", type=Path, default=Path("analysis"), help="where to write to")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    args.output.mkdir(parents=True, exist_ok=True)
    packages = ["pandas", "matplotlib"] if args.pandas else []
    sandbox = isolet.Sandbox(packages=packages, wheels=args.wheels)
    with sandbox.session() as session:
        session.files.put("sales.csv", sales())
        execution = session.run(PANDAS if args.pandas else STANDARD).raise_for_error()
        print(execution.stdout, end="")
        print(f"most revenue: {execution.value}")

        # The contents are the guest's. Where they are written is decided here.
        written: list[Path] = []
        for at, display in enumerate(execution.displays, 1):
            for mime, data in display.data.items():
                if mime in SUFFIXES:
                    path = args.output / f"{at:03}{SUFFIXES[mime]}"
                    path.write_bytes(data if isinstance(data, bytes) else data.encode())
                    written.append(path)
        for file in execution.files:
            if PurePosixPath(file.path).name == "summary.csv":
                path = args.output / "summary.csv"
                path.write_bytes(session.files.get(file.path))
                written.append(path)
    for path in written:
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
