"""Stops the clock, and moves it."""

import datetime

from freezegun import freeze_time

with freeze_time("2026-01-02") as clock:
    assert datetime.datetime.now() == datetime.datetime(2026, 1, 2)
    clock.tick(60)
    assert datetime.datetime.now().minute == 1
