"""Opens PDF files and reads ranges of pages, for the scripts of this skill."""

import re
import sys
from pathlib import Path

from pypdf import PdfReader
from pypdf.errors import PyPdfError


def fail(message):
    """Ends the script with a message."""
    sys.exit(f"error: {message}")


def open_pdf(path, password=None):
    if not Path(path).is_file():
        fail(f"no such file: {path}")
    try:
        reader = PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(password or ""):
            fail(f"{path} is encrypted; give its --password")
        len(reader.pages)
    except PyPdfError as error:
        fail(f"not a PDF file: {path}: {error}")
    return reader


def page_range(text, count):
    """Returns the indexes that a range such as `1-3,5` means for a number of pages."""
    if not text:
        return list(range(count))
    pages = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d*)(-?)(\d*)", part.strip())
        if not match or not (match[1] or match[3]):
            fail(f"not a range of pages: {part!r}")
        first = int(match[1] or 1)
        last = int(match[3] or count) if match[2] else first
        if not 1 <= first <= last <= count:
            fail(f"pages {part} are not in 1-{count}")
        pages.extend(range(first - 1, last))
    return pages
