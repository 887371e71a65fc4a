"""Finds by XPath and transforms by XSLT."""

from lxml import etree, html

root = etree.fromstring("<a><b x='1'>one</b><b x='2'>two</b></a>")
assert root.xpath("//b[@x='2']/text()") == ["two"]
style = etree.XML(
    '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">'
    '<xsl:template match="/"><c><xsl:value-of select="//b"/></c></xsl:template></xsl:stylesheet>'
)
assert str(etree.XSLT(style)(root)).strip().endswith("<c>one</c>")
assert html.fromstring("<p>hi <b>you</b>").text_content() == "hi you"
