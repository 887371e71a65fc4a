"""Runs cells with a command of its own."""

from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell()
assert shell.run_cell("x = 2\nx * 3").result == 6
assert shell.run_line_magic("who_ls", "") == ["x"]
