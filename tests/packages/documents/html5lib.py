"""Parses broken HTML as browsers do."""

import html5lib

root = html5lib.parse("<p>one<p>two<table><td>x", namespaceHTMLElements=False)
assert len(root.findall(".//p")) == 2 and root.find(".//tbody/tr/td").text == "x"
