"""Reads and writes JSON."""

import ujson

assert ujson.loads(ujson.dumps({"a": [1, 2.5, None, "é"]})) == {"a": [1, 2.5, None, "é"]}
