"""Has its own time zones."""

import datetime
import importlib.resources
import zoneinfo

file = importlib.resources.files("tzdata") / "zoneinfo" / "Asia" / "Tokyo"
with file.open("rb") as file:
    tokyo = zoneinfo.ZoneInfo.from_file(file)
assert datetime.datetime(2026, 1, 1, tzinfo=tokyo).utcoffset().seconds == 9 * 3600
