"""Parses nested lists."""

import pyparsing as pp

item = pp.Forward()
item <<= pp.common.integer | pp.Group("(" + item[...] + ")")
assert item.parse_string("(1 (2 3))").as_list() == [["(", 1, ["(", 2, 3, ")"], ")"]]
