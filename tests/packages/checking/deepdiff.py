"""Compares nested data."""

from deepdiff import DeepDiff

diff = DeepDiff({"a": [1, 2], "b": 1}, {"a": [1, 3], "c": 1})
assert diff["values_changed"] == {"root['a'][1]": {"new_value": 3, "old_value": 2}}
assert list(diff["dictionary_item_added"]) == ["root['c']"]
