"""Draws a chart of columns of a CSV file."""

import argparse
import csv
import datetime
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

STYLE = Path(__file__).resolve().parent.parent / "assets" / "report.mplstyle"


def read(path):
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    except OSError as error:
        sys.exit(f"error: cannot read {path}: {error.strerror}")
    if not rows:
        sys.exit(f"error: {path} has no rows")
    return rows


def numbers(rows, column):
    """Returns the numbers of a column, with None for empty fields."""
    if column not in rows[0]:
        sys.exit(f"error: no column {column!r}; there are {', '.join(rows[0])}")
    found = []
    for line, row in enumerate(rows, 2):
        text = (row[column] or "").strip()
        try:
            found.append(float(text) if text else None)
        except ValueError:
            sys.exit(f"error: line {line}: {column} is not a number: {text!r}")
    if all(value is None for value in found):
        sys.exit(f"error: column {column!r} is empty")
    return found


def positions(rows, column):
    """Returns a column as dates or numbers if all of it is such, else as text."""
    if column not in rows[0]:
        sys.exit(f"error: no column {column!r}; there are {', '.join(rows[0])}")
    texts = [row[column].strip() for row in rows]
    for kind in (datetime.date.fromisoformat, float):
        try:
            return [kind(text) for text in texts]
        except ValueError:
            continue
    return texts


def draw_bars(axes, names, columns, stacked):
    places = range(len(names))
    bottom = [0.0] * len(names)
    width = 0.8 if stacked else 0.8 / len(columns)
    for index, (column, values) in enumerate(columns.items()):
        values = [value or 0.0 for value in values]
        if stacked:
            axes.bar(places, values, width, bottom=bottom, label=column)
            bottom = [low + value for low, value in zip(bottom, values)]
        else:
            shift = (index - (len(columns) - 1) / 2) * width
            axes.bar([place + shift for place in places], values, width, label=column)
    axes.set_xticks(places, names)
    axes.grid(axis="x", visible=False)


def draw(axes, kind, x, columns):
    if kind in ("bar", "stacked"):
        draw_bars(axes, [str(name) for name in x], columns, kind == "stacked")
        return
    for column, values in columns.items():
        if kind == "hist":
            axes.hist([value for value in values if value is not None], bins="auto", label=column)
            continue
        points = [(at, value) for at, value in zip(x, values) if value is not None]
        if kind == "line":
            axes.plot(*zip(*points), marker="o", label=column)
        else:
            axes.scatter(*zip(*points), label=column)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("input")
    parser.add_argument("output", help="a file that ends with .png or .svg")
    parser.add_argument("--kind", choices=["line", "bar", "stacked", "scatter", "hist"])
    parser.add_argument("--x")
    parser.add_argument("--y", nargs="+", required=True)
    parser.add_argument("--title", default="")
    parser.add_argument("--ylabel", default="")
    parser.add_argument("--size", default="8x4.5")
    parser.add_argument("--dpi", type=int, default=120)
    parser.set_defaults(kind="line")
    args = parser.parse_args()
    if not args.output.lower().endswith((".png", ".svg")):
        sys.exit("error: the output has to end with .png or .svg")
    if args.kind == "hist" and len(args.y) > 1:
        sys.exit("error: a histogram has one column")
    if args.kind != "hist" and not args.x:
        sys.exit(f"error: {args.kind} needs --x")
    try:
        width, height = map(float, args.size.split("x"))
    except ValueError:
        sys.exit(f"error: not a size: {args.size!r}")

    rows = read(args.input)
    columns = {column: numbers(rows, column) for column in args.y}
    x = positions(rows, args.x) if args.x else None
    plt.style.use(STYLE)
    figure, axes = plt.subplots(figsize=(width, height))
    draw(axes, args.kind, x, columns)
    axes.set_title(args.title)
    axes.set_xlabel((args.x or args.y[0]).replace("_", " "))
    axes.set_ylabel(args.ylabel)
    if len(columns) > 1:
        axes.legend()
    figure.savefig(args.output, dpi=args.dpi)
    for column, values in columns.items():
        there = [value for value in values if value is not None]
        empty = len(values) - len(there)
        print(
            f"{column}: {len(there)} points from {min(there):g} to {max(there):g}"
            + (f", {empty} empty left out" if empty else "")
        )
    print(f"{args.output}: {args.kind}, {width:g} x {height:g} inches at {args.dpi} dpi")


if __name__ == "__main__":
    main()
