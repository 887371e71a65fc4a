"""Renders CommonMark as HTML."""

from markdown_it import MarkdownIt

assert MarkdownIt().render("# *Hi*\n") == "<h1><em>Hi</em></h1>\n"
