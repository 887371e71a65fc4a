"""Checks a document by rules and lists its errors."""

from cerberus import Validator

check = Validator({"age": {"type": "integer", "min": 0}, "name": {"required": True}})
assert check.validate({"age": 3, "name": "Ann"})
assert not check.validate({"age": -1}) and set(check.errors) == {"age", "name"}
