"""Converts units and refuses to add different ones."""

import pint

units = pint.UnitRegistry()
speed = 36 * units.km / units.hour
assert round(speed.to("m/s").magnitude, 9) == 10
try:
    speed + 1 * units.meter
    raise SystemExit("it adds a speed and a length")
except pint.DimensionalityError:
    pass
