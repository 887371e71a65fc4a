"""Writes an encrypted PDF and reads it."""

import io

import pypdf

writer = pypdf.PdfWriter()
writer.add_blank_page(200, 100)
writer.add_metadata({"/Title": "Hello"})
writer.encrypt("secret", algorithm="RC4-128")
file = io.BytesIO()
writer.write(file)
reader = pypdf.PdfReader(file, password="secret")
assert len(reader.pages) == 1 and reader.metadata.title == "Hello"
