"""Packs data, with a type of its own, and unpacks it."""

import datetime

import msgpack

day = datetime.date(2026, 1, 2)
packed = msgpack.packb({"day": day, "n": [1, 2]}, default=lambda value: value.isoformat())
assert msgpack.unpackb(packed) == {"day": "2026-01-02", "n": [1, 2]}
