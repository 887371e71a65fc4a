"""Writes and reads JSON with dates."""

import datetime

import orjson

assert orjson.dumps({"a": datetime.date(2026, 1, 2)}) == b'{"a":"2026-01-02"}'
assert orjson.loads(b"[1, 2.5]") == [1, 2.5]
