"""Merges PDF files, or ranges of their pages, into one."""

import argparse
import os
from pathlib import Path

from pypdf import PdfWriter

import common


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output")
    parser.add_argument("inputs", nargs="+", help="FILE or FILE:PAGES, such as a.pdf:1-3,7")
    parser.add_argument("--password")
    args = parser.parse_args()

    writer = PdfWriter()
    for each in args.inputs:
        path, pages = each, ""
        if ":" in each and not os.path.exists(each):
            path, _, pages = each.rpartition(":")
        reader = common.open_pdf(path, args.password)
        if os.path.exists(args.output) and os.path.samefile(path, args.output):
            common.fail("the output is one of the inputs")
        start = len(writer.pages)
        for index in common.page_range(pages, len(reader.pages)):
            writer.add_page(reader.pages[index])
        writer.add_outline_item(title=Path(path).stem, page_number=start)
        print(f"{path}: {len(writer.pages) - start} of {len(reader.pages)} pages")
    writer.write(args.output)
    print(f"{args.output}: {len(writer.pages)} pages")


if __name__ == "__main__":
    main()
