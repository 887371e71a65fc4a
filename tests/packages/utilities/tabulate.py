"""Writes a table as Markdown."""

from tabulate import tabulate

table = tabulate([["a", 1], ["b", 22]], headers=["x", "y"], tablefmt="github")
assert table.splitlines()[-1] == "| b   |  22 |"
