"""Checks data by a schema of JSON."""

import fastjsonschema

check = fastjsonschema.compile({"type": "object", "properties": {"a": {"minimum": 0}}})
assert check({"a": 1}) == {"a": 1}
try:
    check({"a": -1})
    raise SystemExit("it accepts anything")
except fastjsonschema.JsonSchemaException as error:
    assert error.path == ["data", "a"]
