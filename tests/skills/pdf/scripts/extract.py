"""Extracts the text of a PDF file as text or JSON."""

import argparse
import json
from pathlib import Path

import common


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("input")
    parser.add_argument("output", help="a file that ends with .json or anything else")
    parser.add_argument("--pages", default="", help="only these, such as 2-5")
    parser.add_argument("--layout", action="store_true", help="keep columns apart")
    parser.add_argument("--password")
    args = parser.parse_args()

    reader = common.open_pdf(args.input, args.password)
    mode = "layout" if args.layout else "plain"
    pages = []
    for index in common.page_range(args.pages, len(reader.pages)):
        text = reader.pages[index].extract_text(extraction_mode=mode)
        text = "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
        pages.append({"page": index + 1, "text": text})
    if args.output.endswith(".json"):
        found = reader.metadata or {}
        metadata = {str(key).lstrip("/"): str(value) for key, value in found.items()}
        result = {"pages_in_file": len(reader.pages), "metadata": metadata, "pages": pages}
        text = json.dumps(result, ensure_ascii=False, indent=2) + "\n"
    else:
        text = "".join(f"--- page {page['page']} ---\n{page['text']}\n\n" for page in pages)
    Path(args.output).write_text(text, encoding="utf-8")
    words = sum(len(page["text"].split()) for page in pages)
    print(f"{args.output}: {len(pages)} pages, {words} words")
    empty = [str(page["page"]) for page in pages if not page["text"].strip()]
    if empty:
        print(f"no text on pages {', '.join(empty)}")


if __name__ == "__main__":
    main()
