"""Fills a template of Word with a loop."""

import io

import docx
from docxtpl import DocxTemplate

template = docx.Document()
template.add_paragraph("{% for name in names %}Hi {{ name }}! {% endfor %}")
file = io.BytesIO()
template.save(file)
filled = DocxTemplate(file)
filled.render({"names": ["Ann", "Bo"]})
assert filled.docx.paragraphs[0].text == "Hi Ann! Hi Bo! "
