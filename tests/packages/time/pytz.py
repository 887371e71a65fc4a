"""Converts between time zones."""

import datetime

import pytz

noon = pytz.utc.localize(datetime.datetime(2026, 7, 1, 12))
assert noon.astimezone(pytz.timezone("America/New_York")).hour == 8
