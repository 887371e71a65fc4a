"""Finds the placeholders of a Word document, for the scripts of this skill."""

import re
import sys
from pathlib import Path

import docx
from docx.opc.exceptions import PackageNotFoundError

PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_]\w*(?:\.\w+)*)\s*\}\}")


def fail(message):
    """Ends the script with a message."""
    sys.exit(f"error: {message}")


def open_document(path):
    if not Path(path).is_file():
        fail(f"no such file: {path}")
    try:
        return docx.Document(path)
    except (PackageNotFoundError, KeyError, ValueError):
        fail(f"not a Word document: {path}")


def containers(document):
    """Yields all that has paragraphs and tables of its own: the body, headers and footers."""
    yield document
    for section in document.sections:
        for part in (
            section.header,
            section.footer,
            section.first_page_header,
            section.first_page_footer,
        ):
            if not part.is_linked_to_previous:
                yield part


def tables(container):
    """Yields the tables of a container, those in cells included."""
    for table in container.tables:
        yield table
        for row in table.rows:
            for cell in row.cells:
                yield from tables(cell)


def paragraphs(container):
    """Yields the paragraphs of a container, those in tables included."""
    yield from container.paragraphs
    for table in container.tables:
        for row in table.rows:
            for cell in row.cells:
                yield from paragraphs(cell)


def names(paragraph):
    """Returns the names in a paragraph, in order."""
    return PLACEHOLDER.findall("".join(run.text for run in paragraph.runs))


def row_names(row):
    return [name for cell in row.cells for each in paragraphs(cell) for name in names(each)]
