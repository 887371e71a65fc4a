"""Finds the title and the article of a page."""

from readability import Document

text = "The sea was calm, and the boats came home before the evening. " * 9
menu = "<div class='sidebar'>Menu</div>"
page = f"<html><head><title>Sea</title></head><body>{menu}<div><p>{text}</p></div></body></html>"
document = Document(page)
assert document.title() == "Sea"
assert "boats came home" in document.summary() and "Menu" not in document.summary()
