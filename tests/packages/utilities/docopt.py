"""Reads arguments by the text of the help."""

from docopt import docopt

found = docopt("Usage: a [--fast] <file>", ["--fast", "x.csv"])
assert found == {"--fast": True, "<file>": "x.csv"}
