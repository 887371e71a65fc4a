"""Validates nested data, reports errors and makes a schema."""

import datetime

from pydantic import BaseModel, Field, ValidationError


class Item(BaseModel):
    name: str
    price: float = Field(gt=0)
    day: datetime.date


class Order(BaseModel):
    items: list[Item]


order = Order.model_validate_json('{"items":[{"name":"a","price":"1.5","day":"2026-01-02"}]}')
assert order.items[0].price == 1.5 and order.items[0].day.year == 2026
try:
    Order(items=[{"name": "a", "price": 0, "day": "x"}])
    raise AssertionError("not refused")
except ValidationError as error:
    assert error.error_count() == 2
assert Order.model_json_schema()["$defs"]["Item"]["properties"]["price"]["exclusiveMinimum"] == 0
