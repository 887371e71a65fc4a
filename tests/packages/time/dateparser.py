"""Reads dates as people write them, in several languages."""

from datetime import datetime

import dateparser

now = {"RELATIVE_BASE": datetime(2026, 1, 10)}
assert dateparser.parse("2 days ago", settings=now) == datetime(2026, 1, 8)
assert dateparser.parse("12 août 2025") == datetime(2025, 8, 12)
