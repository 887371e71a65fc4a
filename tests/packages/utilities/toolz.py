"""Composes functions and groups."""

from toolz import groupby, pipe, curried

assert pipe([1, 2, 3], curried.map(lambda n: n * 2), sum) == 12
assert groupby(len, ["a", "bb", "c"]) == {1: ["a", "c"], 2: ["bb"]}
