"""Parses dates, adds months and follows a rule."""

import datetime

from dateutil import parser, relativedelta, rrule

day = parser.parse("March 31, 2026 10:00")
assert day + relativedelta.relativedelta(months=1) == datetime.datetime(2026, 4, 30, 10)
fridays = rrule.rrule(rrule.MONTHLY, byweekday=rrule.FR(1), count=2, dtstart=day)
assert [friday.day for friday in fridays] == [3, 1]
