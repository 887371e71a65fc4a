"""Splits and windows sequences."""

from more_itertools import chunked, windowed

assert list(chunked("abcde", 2)) == [["a", "b"], ["c", "d"], ["e"]]
assert list(windowed([1, 2, 3], 2)) == [(1, 2), (2, 3)]
