"""Computes the change of a document and applies it."""

import jsonpatch

patch = jsonpatch.make_patch({"a": 1}, {"a": 2, "b": 3})
assert patch.apply({"a": 1}) == {"a": 2, "b": 3}
assert {"op": "add", "path": "/b", "value": 3} in patch.patch
