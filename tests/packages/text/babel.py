"""Formats dates, numbers and money as languages do."""

from datetime import date

from babel.dates import format_date
from babel.numbers import format_currency, format_decimal

assert format_date(date(2026, 1, 2), "long", locale="de") == "2. Januar 2026"
assert format_decimal(1234567.5, locale="fr") == "1\u202f234\u202f567,5"
assert format_currency(9.5, "EUR", locale="en_US") == "€9.50"
