"""Makes a notebook, checks it and reads it."""
# With: jsonschema<4.18

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

book = new_notebook(cells=[new_code_cell("1 + 1")])
nbformat.validate(book)
assert nbformat.reads(nbformat.writes(book), as_version=4).cells[0].source == "1 + 1"
