"""Finds the article in a page, without its menu."""

import trafilatura

text = "The sea was calm, and the boats came home before the evening with all of their fish. " * 6
page = f"<html><body><nav>Menu</nav><article><h1>Sea</h1><p>{text}</p></article></body></html>"
article = trafilatura.extract(page)
assert "boats came home" in article and "Menu" not in article
