"""Computes the next times of a schedule."""

from datetime import datetime

from croniter import croniter

times = croniter("30 9 * * mon", datetime(2026, 1, 2))
assert times.get_next(datetime) == datetime(2026, 1, 5, 9, 30)
