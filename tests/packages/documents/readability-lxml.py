"""Finds the title and the article of a page."""

from readability import Document

text = "The sea was calm, and the boats came home before the evening. " * 9
page = f"<html><head><title>Sea</title></head><body><nav>Menu</nav><div><p>{text}</p></div></body>"
document = Document(page)
assert document.title() == "Sea"
assert "boats came home" in document.summary() and "Menu" not in document.summary()
