"""Tells the zone of the sandbox."""

import tzlocal

assert str(tzlocal.get_localzone()) == "UTC"
