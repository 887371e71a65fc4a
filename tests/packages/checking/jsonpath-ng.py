"""Finds values by paths."""

from jsonpath_ng.ext import parse

data = {"items": [{"n": 1, "x": "a"}, {"n": 5, "x": "b"}]}
assert [match.value for match in parse("$.items[?n > 2].x").find(data)] == ["b"]
