"""Reads the text of a PDF and where it stands."""
# With: fpdf2

import io

from fpdf import FPDF
from pdfminer.high_level import extract_pages, extract_text

pdf = FPDF()
pdf.add_page()
pdf.set_font("helvetica", size=12)
pdf.cell(text="Hello")
file = bytes(pdf.output())
assert extract_text(io.BytesIO(file)).strip() == "Hello"
(page,) = extract_pages(io.BytesIO(file))
assert any(box.y0 > page.height / 2 for box in page if hasattr(box, "get_text"))
