"""Writes a text of OpenDocument and reads it."""

from odf import teletype
from odf.opendocument import OpenDocumentText, load
from odf.text import P

document = OpenDocumentText()
document.text.addElement(P(text="Hello"))
document.save("a.odt")
assert [teletype.extractText(p) for p in load("a.odt").getElementsByType(P)] == ["Hello"]
