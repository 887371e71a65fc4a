"""Writes a PDF with a paragraph and a table."""

import io

from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

file = io.BytesIO()
parts = [Paragraph("Hello", getSampleStyleSheet()["Title"]), Table([["a", 1], ["b", 2]])]
SimpleDocTemplate(file).build(parts)
assert file.getvalue().startswith(b"%PDF-")
