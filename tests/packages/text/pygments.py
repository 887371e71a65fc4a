"""Colours Python as HTML and for a terminal."""

from pygments import highlight
from pygments.formatters import HtmlFormatter, TerminalFormatter
from pygments.lexers import PythonLexer

html = highlight("def f(): pass", PythonLexer(), HtmlFormatter())
assert '<span class="k">def</span>' in html
assert "\x1b[34mdef" in highlight("def f(): pass", PythonLexer(), TerminalFormatter())
