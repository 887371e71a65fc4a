"""Reads times relative to a day."""

from datetime import datetime

import parsedatetime

found, _ = parsedatetime.Calendar().parseDT("tomorrow at 3pm", datetime(2026, 1, 2))
assert found == datetime(2026, 1, 3, 15)
