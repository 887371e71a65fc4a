"""Forgets what was not used."""

from cachetools import LRUCache, cached

calls = []


@cached(LRUCache(maxsize=2))
def square(n):
    calls.append(n)
    return n * n


assert [square(n) for n in (1, 2, 1, 3, 2)] == [1, 4, 1, 9, 4] and calls == [1, 2, 3, 2]
