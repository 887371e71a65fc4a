"""Writes a PDF and reads its text."""

import pymupdf

file = pymupdf.open()
file.new_page().insert_text((72, 72), "Hello")
assert file[0].get_text().strip() == "Hello"
