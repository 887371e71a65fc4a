"""Reads an event of a calendar and writes one."""

from datetime import datetime

from icalendar import Calendar, Event

event = Event()
event.add("summary", "Lunch")
event.add("dtstart", datetime(2026, 1, 2, 12))
calendar = Calendar()
calendar.add_component(event)
text = calendar.to_ical()
assert b"DTSTART:20260102T120000" in text
assert Calendar.from_ical(text).walk("VEVENT")[0]["SUMMARY"] == "Lunch"
