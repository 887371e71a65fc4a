"""Turns reStructuredText into HTML."""

from docutils.core import publish_parts

parts = publish_parts("Title\n=====\n\nSome *text*.\n", writer="html5")
assert parts["title"] == "Title" and "<em>text</em>" in parts["body"]
