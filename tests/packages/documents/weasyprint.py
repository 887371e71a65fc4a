"""Makes a PDF of HTML."""

from weasyprint import HTML

assert HTML(string="<h1>Hi</h1>").write_pdf().startswith(b"%PDF")
