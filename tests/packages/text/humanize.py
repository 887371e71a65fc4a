"""Describes sizes, times and numbers."""

import datetime

import humanize

assert humanize.naturalsize(1_500_000) == "1.5 MB"
assert humanize.precisedelta(datetime.timedelta(hours=25)) == "1 day and 1 hour"
