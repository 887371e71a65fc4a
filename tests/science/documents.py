"""Documents: XML and HTML, Word, PowerPoint, Excel."""

import io

import docx
import openpyxl
import pptx
import xlsxwriter
from bs4 import BeautifulSoup
from lxml import etree, html

root = etree.fromstring("<a><b x='1'>one</b><b x='2'>two</b></a>")
assert root.xpath("//b[@x='2']/text()") == ["two"]
style = etree.XML(
    '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">'
    '<xsl:template match="/"><c><xsl:value-of select="//b"/></c></xsl:template></xsl:stylesheet>'
)
assert str(etree.XSLT(style)(root)).strip().endswith("<c>one</c>")
assert html.fromstring("<p>hi <b>you</b>").text_content() == "hi you"
assert BeautifulSoup("<p class=x>hi</p>", "lxml").select_one("p.x").text == "hi"

document = docx.Document()
document.add_heading("Title", 1)
document.add_table(2, 2).cell(0, 0).text = "cell"
file = io.BytesIO()
document.save(file)
assert docx.Document(io.BytesIO(file.getvalue())).tables[0].cell(0, 0).text == "cell"

slides = pptx.Presentation()
slides.slides.add_slide(slides.slide_layouts[0]).shapes.title.text = "Hello"
file = io.BytesIO()
slides.save(file)
assert len(pptx.Presentation(io.BytesIO(file.getvalue())).slides) == 1

file = io.BytesIO()
with xlsxwriter.Workbook(file) as book:
    book.add_worksheet("s").write(0, 0, 42)
assert openpyxl.load_workbook(io.BytesIO(file.getvalue()))["s"]["A1"].value == 42

"written"
