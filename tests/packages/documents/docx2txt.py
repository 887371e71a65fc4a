"""Reads the text of a document of Word."""
# With: python-docx

import io

import docx
import docx2txt

document = docx.Document()
document.add_paragraph("Dear reader")
file = io.BytesIO()
document.save(file)
assert docx2txt.process(file).strip() == "Dear reader"
