"""Runs SQL queries over CSV files, and writes the results as Markdown."""

import argparse
import csv
import re
import sqlite3
import sys
from pathlib import Path


def fail(message):
    sys.exit(f"error: {message}")


def kind(values):
    """Returns the type of a column and what reads its values."""
    there = [value for value in values if value != ""]
    for name, read in (("INTEGER", int), ("REAL", float)):
        try:
            for value in there:
                read(value)
        except ValueError:
            continue
        # Codes with leading zeros are texts.
        if there and not any(re.match(r"-?0\d", value) for value in there):
            return name, read
    return "TEXT", str


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def load(database, path):
    """Makes a table of a CSV file. Returns its name, columns with types, and number of rows."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            lines = [line for line in csv.reader(file) if line]
    except (OSError, UnicodeDecodeError) as error:
        fail(f"cannot read {path}: {error}")
    if not lines:
        fail(f"{path} is empty")
    head, rows = lines[0], lines[1:]
    for number, row in enumerate(rows, 2):
        if len(row) != len(head):
            fail(f"{path}: row {number} has {len(row)} fields, not {len(head)}")
    table = re.sub(r"\W+", "_", Path(path).stem).strip("_").lower()
    kinds = [kind(column) for column in zip(*rows)] or [("TEXT", str)] * len(head)
    columns = [(name.strip(), type_name) for name, (type_name, _) in zip(head, kinds)]
    body = ", ".join(f"{quoted(name)} {type_name}" for name, type_name in columns)
    try:
        database.execute(f"CREATE TABLE {quoted(table)} ({body})")
    except sqlite3.Error as error:
        fail(f"{path}: {error}")
    typed = (
        [None if value == "" else read(value) for value, (_, read) in zip(row, kinds)]
        for row in rows
    )
    marks = ", ".join("?" * len(head))
    database.executemany(f"INSERT INTO {quoted(table)} VALUES ({marks})", typed)
    return table, columns, len(rows)


def queries(text):
    """Yields the titles and queries of a file."""
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield title(statement), statement
            statement = ""
    if re.sub(r"--.*|\s", "", statement):
        yield title(statement), statement


def title(statement):
    match = re.search(r"^--\s*title:\s*(.+)$", statement, re.MULTILINE)
    return match[1].strip() if match else ""


def cell(value):
    if value is None:
        return ""
    text = f"{value:,.2f}" if isinstance(value, float) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")


def table_lines(cursor, rows):
    names = [column[0] for column in cursor.description]
    yield "| " + " | ".join(names) + " |"
    sample = rows[0] if rows else names
    yield "|" + "|".join("-:" if isinstance(value, (int, float)) else "-" for value in sample) + "|"
    for row in rows:
        yield "| " + " | ".join(map(cell, row)) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", metavar="CSV")
    parser.add_argument("--queries", metavar="SQL")
    parser.add_argument("--output", metavar="MD")
    parser.add_argument("--save", metavar="SQLITE", help="write the tables to a database")
    parser.add_argument("--limit", type=int, default=50, help="rows of a result")
    parser.add_argument("--tables", action="store_true", help="only show the tables")
    args = parser.parse_args()
    if not args.tables and not (args.queries and args.output):
        parser.error("--queries and --output are needed, or --tables")

    database = sqlite3.connect(":memory:")
    for path in args.files:
        table, columns, count = load(database, path)
        print(f"{table}: {count} rows; " + ", ".join(" ".join(column) for column in columns))
    database.commit()
    if args.save:
        Path(args.save).unlink(missing_ok=True)
        with sqlite3.connect(args.save) as saved:
            database.backup(saved)
        saved.close()
    if args.tables:
        return

    try:
        text = Path(args.queries).read_text(encoding="utf-8")
    except OSError as error:
        fail(f"cannot read {args.queries}: {error.strerror}")
    database.execute("PRAGMA query_only = ON")
    lines = ["# Report", ""]
    for number, (name, statement) in enumerate(queries(text), 1):
        name = name or f"Query {number}"
        try:
            cursor = database.execute(statement)
            if cursor.description is None:
                fail(f"{name}: not a query")
            rows = cursor.fetchall()
        except sqlite3.Error as error:
            fail(f"{name}: {error}")
        lines += [f"## {name}", "", *table_lines(cursor, rows[: args.limit]), ""]
        if len(rows) > args.limit:
            lines += [f"{len(rows) - args.limit} more rows are not shown.", ""]
        print(f"{name} -> {len(rows)}")
    Path(args.output).write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
