"""Finds and reshapes values by an expression."""

import jmespath

data = {"people": [{"name": "Ann", "age": 30}, {"name": "Bo", "age": 20}]}
assert jmespath.search("people[?age > `25`].name | [0]", data) == "Ann"
