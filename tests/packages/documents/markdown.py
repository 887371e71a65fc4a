"""Renders a table and a list as HTML."""

import markdown

text = "| a |\n|-|\n| 1 |\n\n* x\n"
page = markdown.markdown(text, extensions=["tables"])
assert "<td>1</td>" in page and "<li>x</li>" in page
