"""Reads variables from a file, with references between them."""

from dotenv import dotenv_values

open(".env", "w").write('A=1\nB="x ${A}"  # note\n')
assert dotenv_values(".env") == {"A": "1", "B": "x 1"}
