"""Formats Python."""

import black

assert black.format_str("x = {  'a':1 }", mode=black.Mode()) == 'x = {"a": 1}\n'
