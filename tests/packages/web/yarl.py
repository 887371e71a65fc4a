"""Builds an address with a query."""

from yarl import URL

url = URL("https://example.com/a") / "b c" % {"q": "1"}
assert str(url) == "https://example.com/a/b%20c?q=1" and url.host == "example.com"
