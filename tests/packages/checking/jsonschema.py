"""Validates by a schema with references and formats."""
# With: jsonschema<4.18

import jsonschema

schema = {"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"minimum": 1}}}
jsonschema.validate([1, 2], schema)
errors = list(jsonschema.Draft202012Validator(schema).iter_errors([0, 1]))
assert len(errors) == 1 and list(errors[0].path) == [0]
