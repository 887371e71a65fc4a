"""Loads data by a schema and lists its errors."""

from marshmallow import Schema, ValidationError, fields, validate


class Person(Schema):
    name = fields.Str(required=True)
    age = fields.Int(validate=validate.Range(0))


assert Person().load({"name": "Ann", "age": "3"}) == {"name": "Ann", "age": 3}
try:
    Person().load({"age": -1})
    raise SystemExit("it accepts anything")
except ValidationError as error:
    assert set(error.messages) == {"name", "age"}
