"""Writes a document of Word and reads it."""

import io

import docx

document = docx.Document()
document.add_heading("Title", 1)
document.add_table(2, 2).cell(0, 0).text = "cell"
file = io.BytesIO()
document.save(file)
assert docx.Document(file).tables[0].cell(0, 0).text == "cell"
