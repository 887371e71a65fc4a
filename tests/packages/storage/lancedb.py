"""Stores vectors and finds the nearest."""

import lancedb

table = lancedb.connect("db").create_table("a", [{"vector": [1.0, 0.0], "name": "x"}])
assert table.search([1.0, 0.0]).to_list()[0]["name"] == "x"
