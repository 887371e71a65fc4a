"""Counts the formulas of a workbook, and finds errors and sheets that do not exist."""

import argparse
import re
import sys
import zipfile

from openpyxl import load_workbook
from openpyxl.utils.exceptions import InvalidFileException

ERRORS = ("#REF!", "#DIV/0!", "#VALUE!", "#NAME?", "#N/A", "#NULL!", "#NUM!")
SHEET = re.compile(r"'((?:[^']|'')+)'!|([A-Za-z_][\w.]*)!")


def complaints(book, value):
    for error in ERRORS:
        if error in value:
            yield f"has {error}"
    # Texts and errors look like references.
    for quoted, plain in SHEET.findall(re.sub(r'"[^"]*"|#[\w/]+[!?]?', "", value)):
        name = quoted.replace("''", "'") or plain
        if name not in book.sheetnames:
            yield f"names the sheet {name!r}, which does not exist"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workbook")
    path = parser.parse_args().workbook
    try:
        book = load_workbook(path)
    except (OSError, KeyError, ValueError, InvalidFileException, zipfile.BadZipFile) as error:
        sys.exit(f"error: cannot read {path}: {error}")
    found = []
    for sheet in book.worksheets:
        cells = [cell for row in sheet.iter_rows() for cell in row]
        formulas = [cell for cell in cells if cell.data_type == "f"]
        print(f"{sheet.title}: {sheet.dimensions}, {len(formulas)} formulas")
        for cell in cells:
            if cell.data_type in "fe":
                for complaint in complaints(book, str(cell.value)):
                    found.append(f"{sheet.title}!{cell.coordinate} {complaint}: {cell.value}")
    if found:
        sys.exit("\n".join(found))
    print("no mistakes found")


if __name__ == "__main__":
    main()
