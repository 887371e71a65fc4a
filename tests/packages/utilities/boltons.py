"""Splits, groups and finds a unique list."""

from boltons.iterutils import bucketize, chunked, remap, unique

assert chunked([1, 2, 3], 2) == [[1, 2], [3]] and unique([1, 1, 2]) == [1, 2]
assert bucketize([1, 2, 3], key=lambda n: n % 2) == {1: [1, 3], 0: [2]}
assert remap({"a": None, "b": 1}, lambda path, key, value: value is not None) == {"b": 1}
