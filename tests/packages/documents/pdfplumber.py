"""Reads a table of a PDF."""
# With: fpdf2

import io

import pdfplumber
from fpdf import FPDF

pdf = FPDF()
pdf.add_page()
pdf.set_font("helvetica", size=12)
with pdf.table() as table:
    for row in [("city", "rain"), ("Oslo", "49")]:
        table.row(row)
with pdfplumber.open(io.BytesIO(bytes(pdf.output()))) as file:
    assert file.pages[0].extract_table() == [["city", "rain"], ["Oslo", "49"]]
