"""Writes decimals as JSON and reads them."""

from decimal import Decimal

import simplejson

assert simplejson.dumps({"a": Decimal("1.10")}) == '{"a": 1.10}'
assert simplejson.loads("1.10", use_decimal=True) == Decimal("1.10")
