"""Fills the placeholders and repeated table rows of a Word template from JSON."""

import argparse
import copy
import json
from pathlib import Path

from docx.table import _Row

import common


class Filler:
    """Replaces placeholders by values, and remembers what it did."""

    def __init__(self, data):
        self.data = data
        self.replaced = 0
        self.rows = 0
        self.missing = set()

    def value(self, name, item):
        """Returns the text for a name, or None. `item` is a list's name and the item of a row."""
        value, keys = self.data, name.split(".")
        if item and len(keys) > 1 and keys[0] == item[0]:
            value, keys = item[1], keys[1:]
        for key in keys:
            if not isinstance(value, dict) or key not in value:
                self.missing.add(name)
                return None
            value = value[key]
        return "" if value is None else str(value)

    def fill_paragraph(self, paragraph, item=None):
        runs = paragraph.runs
        text = "".join(run.text for run in runs)
        # From the end, so that earlier positions stay what they are.
        for match in reversed(list(common.PLACEHOLDER.finditer(text))):
            value = self.value(match[1], item)
            if value is not None:
                replace(runs, match.start(), match.end(), value)
                self.replaced += 1

    def fill_table(self, table):
        for row in list(table.rows):
            firsts = [name.split(".")[0] for name in common.row_names(row) if "." in name]
            lists = [name for name in firsts if isinstance(self.data.get(name), list)]
            if len(set(lists)) > 1:
                common.fail(f"one row repeats several lists: {', '.join(sorted(set(lists)))}")
            if lists:
                self.repeat(table, row, lists[0])

    def repeat(self, table, row, name):
        for value in self.data[name]:
            tr = copy.deepcopy(row._tr)
            row._tr.addprevious(tr)
            for cell in _Row(tr, table).cells:
                for paragraph in common.paragraphs(cell):
                    self.fill_paragraph(paragraph, (name, value))
            self.rows += 1
        row._tr.getparent().remove(row._tr)


def replace(runs, start, end, value):
    """Puts a value in the place of the letters from start to end of the runs' joined text."""
    at = 0
    for run in runs:
        text = run.text
        first, last = max(start - at, 0), min(end - at, len(text))
        if first < last:
            run.text = text[:first] + value + text[last:]
            value = ""
        at += len(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("template")
    parser.add_argument("data", help="a file with a JSON object")
    parser.add_argument("output")
    parser.add_argument("--keep-missing", action="store_true")
    args = parser.parse_args()

    document = common.open_document(args.template)
    try:
        data = json.loads(Path(args.data).read_text(encoding="utf-8"))
    except OSError as error:
        common.fail(f"cannot read {args.data}: {error.strerror}")
    except ValueError as error:
        common.fail(f"{args.data} is not JSON: {error}")
    if not isinstance(data, dict):
        common.fail(f"{args.data} has no JSON object")

    filler = Filler(data)
    for container in common.containers(document):
        for table in list(common.tables(container)):
            filler.fill_table(table)
        for paragraph in common.paragraphs(container):
            filler.fill_paragraph(paragraph)
    if filler.missing and not args.keep_missing:
        common.fail(f"the data lacks: {', '.join(sorted(filler.missing))}")
    document.save(args.output)
    print(f"{args.output}: {filler.replaced} placeholders replaced, {filler.rows} rows made")
    if filler.missing:
        print(f"kept: {', '.join(sorted(filler.missing))}")


if __name__ == "__main__":
    main()
