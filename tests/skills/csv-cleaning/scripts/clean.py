"""Cleans a CSV file, and reports what it changed."""

import argparse
import csv
import io
import json
import re
import sys
from pathlib import Path

import pandas as pd

MISSING = {"", "-", "--", "n/a", "na", "nan", "null", "none", "?", "k.a.", "missing"}
YES, NO = {"yes", "y", "true", "t"}, {"no", "n", "false", "f"}
ENOUGH = 0.8
DATES = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d %b %Y", "%b %d, %Y")


def decode(raw):
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return raw.decode("utf-16"), "UTF-16"
    try:
        return raw.decode("utf-8-sig"), "UTF-8"
    except UnicodeDecodeError:
        return raw.decode("cp1252", errors="replace"), "Windows-1252"


def column_names(names):
    """Returns names of lower-case words, each of them once."""
    made = []
    for number, name in enumerate(names, 1):
        name = re.sub(r"\W+", "_", str(name).strip().lower()).strip("_") or f"column_{number}"
        again = sum(other == name or other.startswith(f"{name}__") for other in made)
        made.append(f"{name}__{again + 1}" if again else name)
    return made


def as_numbers(texts, comma):
    plain = texts.str.replace(r"[\s\u00a0€$£%]", "", regex=True)
    if comma:
        plain = plain.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
    else:
        plain = plain.str.replace(r",(?=\d{3}(\D|$))", "", regex=True)
    # Codes, not numbers.
    plain = plain.mask(plain.str.fullmatch(r"0\d+", na=False))
    return pd.to_numeric(plain, errors="coerce")


def as_dates(texts, dayfirst):
    made = pd.Series(pd.NaT, index=texts.index, dtype="datetime64[s]")
    for form in (*DATES, "%d/%m/%Y" if dayfirst else "%m/%d/%Y"):
        parsed = pd.to_datetime(texts, format=form, errors="coerce")
        made = made.fillna(parsed.astype("datetime64[s]"))
    return made


def as_booleans(texts):
    lower = texts.str.lower()
    made = pd.Series(pd.NA, index=texts.index, dtype="boolean")
    made[lower.isin(YES)] = True
    made[lower.isin(NO)] = False
    return made


def convert(texts, comma, dayfirst):
    """Returns the values of a column in the type that most of it has, and the type's name."""
    there = texts.notna().sum()
    if there == 0:
        return texts, "empty"
    for name, made in (
        ("boolean", as_booleans(texts)),
        ("number", as_numbers(texts, comma)),
        ("date", as_dates(texts, dayfirst)),
    ):
        if made.notna().sum() >= ENOUGH * there:
            if name == "number" and (made.dropna() % 1 == 0).all():
                return made.astype("Int64"), "integer"
            return made, name
    return texts, "text"


def fill(frame, rules, report):
    for rule in rules:
        column, _, value = rule.partition("=")
        if column not in frame or not value:
            sys.exit(f"error: cannot fill {rule!r}; there are {', '.join(frame.columns)}")
        gaps = int(frame[column].isna().sum())
        try:
            if value in ("median", "mean"):
                value = getattr(frame[column], value)()
            kind = frame[column].dtype
            if pd.api.types.is_integer_dtype(kind) and float(value) % 1:
                frame[column] = frame[column].astype("Float64")
            elif pd.api.types.is_numeric_dtype(kind):
                value = float(value)
            frame[column] = frame[column].fillna(value)
        except (TypeError, ValueError) as error:
            sys.exit(f"error: cannot fill {rule!r}: {error}")
        report["filled"][column] = gaps


def clean(path, keys, dayfirst, fills):
    try:
        text, encoding = decode(Path(path).read_bytes())
    except OSError as error:
        sys.exit(f"error: cannot read {path}: {error.strerror}")
    if not text.strip():
        sys.exit(f"error: {path} is empty")
    try:
        separator = csv.Sniffer().sniff(text[:10_000], ",;\t|").delimiter
    except csv.Error:
        separator = ","
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=separator)]
    names = column_names(rows[0])
    ragged = [line for line, row in enumerate(rows, 1) if row and len(row) != len(names)]
    if ragged:
        sys.exit(f"error: line {ragged[0]} has not {len(names)} fields, as the header has")
    body = [row for row in rows[1:] if row]
    lines = [line for line, row in enumerate(rows, 1) if row][1:]
    frame = pd.DataFrame(body, columns=names, index=lines, dtype="str")
    report = {
        "encoding": encoding, "separator": separator, "rows_before": len(frame),
        "renamed": {old: new for old, new in zip(rows[0], names) if old != new},
        "empty_rows": 0, "duplicates": 0, "repeated_keys": 0,
        "columns": {}, "rejected": [], "filled": {},
    }

    frame = frame.apply(lambda column: column.str.strip())
    frame = frame.mask(frame.apply(lambda column: column.str.lower().isin(MISSING)))
    report["empty_rows"] = int(frame.isna().all(axis=1).sum())
    frame = frame.dropna(how="all")
    report["duplicates"] = int(frame.duplicated().sum())
    frame = frame.drop_duplicates()
    if unknown := [key for key in keys if key not in frame]:
        sys.exit(f"error: no column {unknown[0]!r}; there are {', '.join(frame.columns)}")
    if keys:
        again = frame.duplicated(subset=keys, keep="last") & frame[keys].notna().all(axis=1)
        report["repeated_keys"] = int(again.sum())
        frame = frame[~again]

    for column in frame.columns:
        made, kind = convert(frame[column], separator == ";", dayfirst)
        for line in frame.index[frame[column].notna() & made.isna()]:
            report["rejected"].append(
                {"line": int(line), "column": column, "value": frame.at[line, column]}
            )
        frame[column] = made
        report["columns"][column] = {"type": kind, "missing": int(made.isna().sum())}
    fill(frame, fills, report)
    report["rows_after"] = len(frame)
    return frame, report


def markdown(path, report):
    yield f"# Cleaning of {Path(path).name}"
    yield ""
    yield f"* {report['encoding']}, separator `{report['separator']}`"
    yield f"* {report['rows_before']} rows before, {report['rows_after']} after"
    for key in ("empty_rows", "duplicates", "repeated_keys"):
        if report[key]:
            yield f"* dropped {key.replace('_', ' ')}: {report[key]}"
    for column, gaps in report["filled"].items():
        yield f"* filled in {column}: {gaps}"
    yield ""
    yield "| column | type | missing |"
    yield "|-|-|-|"
    for column, about in report["columns"].items():
        yield f"| {column} | {about['type']} | {about['missing']} |"
    if report["rejected"]:
        yield ""
        yield "Values that do not fit the type of their column, and are missing now:"
        yield ""
        for each in report["rejected"]:
            yield f"* line {each['line']}, {each['column']}: `{each['value']}`"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("input")
    parser.add_argument("output_dir")
    parser.add_argument("--key", nargs="+", default=[])
    parser.add_argument("--dayfirst", action="store_true", help="03/04/2026 is in April")
    parser.add_argument("--fill", nargs="+", default=[], metavar="COLUMN=VALUE")
    args = parser.parse_args()

    frame, report = clean(args.input, args.key, args.dayfirst, args.fill)
    out = Path(args.output_dir)
    out.mkdir(parents=True, exist_ok=True)
    frame.to_csv(out / "clean.csv", index=False, date_format="%Y-%m-%d")
    text = json.dumps(report, ensure_ascii=False, indent=2)
    (out / "report.json").write_text(text + "\n", encoding="utf-8")
    lines = markdown(args.input, report)
    (out / "report.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{report['rows_before']} rows before, {report['rows_after']} after")
    print(f"values rejected: {len(report['rejected'])}; see {out / 'report.md'}")


if __name__ == "__main__":
    main()
