"""Makes a workbook with the rows of a CSV file and a summary in formulas."""

import argparse
import csv
import datetime
import re
import sys

from openpyxl import Workbook
from openpyxl.chart import BarChart, Reference
from openpyxl.formatting.rule import DataBarRule
from openpyxl.styles import Alignment, Border, Font, PatternFill, Side
from openpyxl.utils import get_column_letter

HEAD = {
    "font": Font(bold=True, color="FFFFFF"),
    "fill": PatternFill("solid", fgColor="2F5597"),
    "alignment": Alignment(horizontal="center"),
}
MONEY = "#,##0.00"


def typed(text):
    """Returns a number, a date or the text itself."""
    if re.fullmatch(r"-?(0|[1-9]\d*)", text):
        return int(text)
    if re.fullmatch(r"-?\d+\.\d+", text):
        return float(text)
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        try:
            return datetime.date.fromisoformat(text)
        except ValueError:
            return text
    return text or None


def read(path, group, value):
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            lines = list(csv.reader(file))
    except OSError as error:
        sys.exit(f"error: cannot read {path}: {error.strerror}")
    if len(lines) < 2:
        sys.exit(f"error: {path} has no rows")
    head, rows = lines[0], [[typed(cell) for cell in line] for line in lines[1:]]
    for name in (group, value):
        if name not in head:
            sys.exit(f"error: no column {name!r}; there are {', '.join(head)}")
    at = head.index(value)
    for number, row in enumerate(rows, 2):
        if len(row) != len(head):
            sys.exit(f"error: line {number} has {len(row)} fields, not {len(head)}")
        if not isinstance(row[at], (int, float)):
            sys.exit(f"error: line {number}: {value} is not a number: {row[at]!r}")
    return head, rows


def style(cells, **parts):
    for cell in cells:
        for name, part in parts.items():
            setattr(cell, name, part)


def data_sheet(sheet, head, rows):
    sheet.append(head)
    for row in rows:
        sheet.append(row)
    style(sheet[1], **HEAD)
    sheet.freeze_panes = "A2"
    sheet.auto_filter.ref = sheet.dimensions
    for index, column in enumerate(sheet.columns, 1):
        width = max(len(str(cell.value or "")) for cell in column)
        sheet.column_dimensions[get_column_letter(index)].width = min(width, 40) + 3
        for cell in column[1:]:
            if isinstance(cell.value, float):
                cell.number_format = MONEY
            elif isinstance(cell.value, datetime.date):
                cell.number_format = "yyyy-mm-dd"


def summary_sheet(sheet, title, head, rows, group, value):
    def area(name):
        letter = get_column_letter(head.index(name) + 1)
        return f"Data!${letter}$2:${letter}${len(rows) + 1}"

    names = sorted({str(row[head.index(group)]) for row in rows})
    keys, values = area(group), area(value)
    sheet["A1"] = title
    sheet["A1"].font = Font(bold=True, size=14)
    sheet.append([])
    sheet.append([group, "Rows", "Total", "Average", "Share"])
    style(sheet[3], **HEAD)
    first, last = 4, 3 + len(names)
    end = last + 1
    for row, name in enumerate(names, first):
        sheet.append(
            [
                name,
                f"=COUNTIFS({keys},A{row})",
                f"=SUMIFS({values},{keys},A{row})",
                f"=AVERAGEIFS({values},{keys},A{row})",
                f"=C{row}/C${end}",
            ]
        )
    sheet.append(
        [
            "Total",
            f"=SUM(B{first}:B{last})",
            f"=SUM(C{first}:C{last})",
            f"=C{end}/B{end}",
            f"=SUM(E{first}:E{last})",
        ]
    )
    style(sheet[end], font=Font(bold=True), border=Border(top=Side(style="thin")))
    for row in sheet.iter_rows(first, end):
        style(row[2:4], number_format=MONEY)
        row[4].number_format = "0.0%"
    for letter, width in zip("ABCDE", (24, 10, 16, 14, 10)):
        sheet.column_dimensions[letter].width = width
    bar = DataBarRule(start_type="num", start_value=0, end_type="max", color="9DC3E6")
    sheet.conditional_formatting.add(f"C{first}:C{last}", bar)

    chart = BarChart()
    chart.title, chart.legend = f"{value} by {group}", None
    chart.add_data(Reference(sheet, min_col=3, min_row=first, max_row=last))
    chart.set_categories(Reference(sheet, min_col=1, min_row=first, max_row=last))
    sheet.add_chart(chart, "G3")
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("input", help="a CSV file with a header")
    parser.add_argument("output")
    parser.add_argument("--group", required=True)
    parser.add_argument("--value", required=True)
    parser.add_argument("--title", default="Summary")
    args = parser.parse_args()

    head, rows = read(args.input, args.group, args.value)
    book = Workbook()
    summary, data = book.active, book.create_sheet("Data")
    summary.title = "Summary"
    data_sheet(data, head, rows)
    names = summary_sheet(summary, args.title, head, rows, args.group, args.value)
    book.save(args.output)
    total = sum(row[head.index(args.value)] for row in rows)
    print(f"{args.output}: {len(rows)} rows, {len(names)} groups ({', '.join(names)})")
    print(f"total of {args.value}: {total:,.2f}")


if __name__ == "__main__":
    main()
