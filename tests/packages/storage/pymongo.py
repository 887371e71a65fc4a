"""Packs a document."""

import bson

assert bson.decode(bson.encode({"a": [1, "b"]})) == {"a": [1, "b"]}
