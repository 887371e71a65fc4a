"""Keeps results in a directory."""

from diskcache import Cache

cache = Cache("c")
cache.set("a", [1, 2], expire=60)
cache["big"] = bytes(100_000)
assert Cache("c")["a"] == [1, 2] and len(cache["big"]) == 100_000
