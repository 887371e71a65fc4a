"""Splits a PDF file into parts with a number of pages."""

import argparse
from pathlib import Path

from pypdf import PdfWriter

import common


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("input")
    parser.add_argument("output_dir")
    parser.add_argument("--every", type=int, default=1, metavar="PAGES")
    parser.add_argument("--pages", default="", help="only these, such as 2-5")
    parser.add_argument("--password")
    args = parser.parse_args()
    if args.every < 1:
        common.fail("--every has to be at least 1")

    reader = common.open_pdf(args.input, args.password)
    pages = common.page_range(args.pages, len(reader.pages))
    out = Path(args.output_dir)
    out.mkdir(parents=True, exist_ok=True)
    starts = range(0, len(pages), args.every)
    for number, start in enumerate(starts, 1):
        writer = PdfWriter()
        part = pages[start : start + args.every]
        for index in part:
            writer.add_page(reader.pages[index])
        path = out / f"{Path(args.input).stem}-{number:03}.pdf"
        writer.write(path)
        print(f"{path.name}: {', '.join(f'page {index + 1}' for index in part)}")
    print(f"{len(starts)} files in {out}")


if __name__ == "__main__":
    main()
