"""Draws a table, sorted, as text and as Markdown."""

from prettytable import PrettyTable, TableStyle

table = PrettyTable(["city", "rain"], sortby="rain")
table.add_rows([["Rome", 66], ["Oslo", 49]])
assert [line.split()[1] for line in str(table).splitlines()[3:5]] == ["Oslo", "Rome"]
table.set_style(TableStyle.MARKDOWN)
assert "| Oslo |  49  |" in table.get_string()
