"""Reads a PDF."""
# With: fpdf2

import pypdfium2
from fpdf import FPDF

pdf = FPDF()
pdf.add_page()
assert len(pypdfium2.PdfDocument(bytes(pdf.output()))) == 1
