"""Finds the zone that a variable names."""

import os

import tzlocal

os.environ["TZ"] = "Europe/Oslo"
assert str(tzlocal.reload_localzone()) == tzlocal.get_localzone_name() == "Europe/Oslo"
