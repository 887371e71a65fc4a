"""Repairs the JSON of a model."""

from json_repair import loads

assert loads("Sure: {'a': [1, 2, True, 'b\": \"c}") is not None
assert loads('{"a": 1, "b": [1, 2') == {"a": 1, "b": [1, 2]}
