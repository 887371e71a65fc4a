"""Finds elements of HTML by CSS selectors."""

from bs4 import BeautifulSoup

soup = BeautifulSoup("<ul><li class=x>one<li>two</ul><a href='/y'>z</a>", "html.parser")
assert soup.select_one("li.x").get_text().startswith("one") and soup.a["href"] == "/y"
