"""Draws a table, a tree and a traceback."""

import io

from rich.console import Console
from rich.table import Table
from rich.tree import Tree

console = Console(file=io.StringIO(), width=60)
table = Table("name", "size")
table.add_row("a", "[b]1[/b]")
tree = Tree("root")
tree.add("leaf")
console.print(table, tree)
assert "│ a    │ 1    │" in console.file.getvalue() and "└── leaf" in console.file.getvalue()
