"""Turns XML into a dictionary and back."""

import xmltodict

data = xmltodict.parse("<a><b x='1'>one</b></a>")
assert data["a"]["b"] == {"@x": "1", "#text": "one"}
assert '<b x="1">one</b>' in xmltodict.unparse(data)
