"""Turns HTML into Markdown."""

from markdownify import markdownify

assert markdownify("<h1>Hi</h1>", heading_style="ATX").strip() == "# Hi"
assert markdownify("<a href='/x'>a</a> <b>b</b>") == "[a](/x) **b**"
