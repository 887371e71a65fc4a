"""Parses, shifts and describes times."""

import arrow

time = arrow.get("2026-01-31T10:00:00+01:00")
assert time.shift(months=1).format("YYYY-MM-DD") == "2026-02-28"
assert time.to("US/Pacific").hour == 1 and time.humanize(time.shift(hours=-2)) == "in 2 hours"
