"""Stores values and counts, by a server of Redis in the same program."""

import fakeredis

db = fakeredis.FakeRedis()
db.incr("n", 2)
db.hset("h", "a", "b")
assert db.get("n") == b"2" and db.hgetall("h") == {b"a": b"b"}
