"""Parses times and adds months in a time zone."""

import pendulum

time = pendulum.datetime(2026, 3, 28, 12, tz="Europe/Berlin").add(days=1)
assert time.utcoffset().total_seconds() == 7200
