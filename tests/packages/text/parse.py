"""Reads values out of text by a format."""

from parse import findall, parse

assert parse("{name} is {age:d}", "Ann is 30").named == {"name": "Ann", "age": 30}
assert [found[0] for found in findall("<{:d}>", "<1> <2>")] == [1, 2]
