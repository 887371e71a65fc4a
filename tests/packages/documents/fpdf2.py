"""Writes a PDF with a table and a link."""

from fpdf import FPDF

pdf = FPDF()
pdf.add_page()
pdf.set_font("helvetica", size=12)
pdf.cell(text="Site", link="https://example.com")
with pdf.table() as table:
    table.row(["a", "b"])
data = bytes(pdf.output())
assert data.startswith(b"%PDF") and b"https://example.com" in data
