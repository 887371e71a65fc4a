"""What Vega-Lite's encodings say of their channels."""

import math
import re

from . import plots
from . import vega_data as data

NAMES = {"average": "Average", "ci0": "Low", "ci1": "High", "valid": "Valid count"}
UNITS = re.compile("year|quarter|month|week|dayofyear|date|day|hours|minutes|seconds")
DISCRETE = ("nominal", "ordinal")


class Channel:
    """What an encoding says of a channel: the field of the rows that it takes, and its type."""

    def __init__(self, name, options):
        self.name = name
        self.options = options
        self.field = options.get("field")
        self.aggregate = options.get("aggregate")
        self.bin = options.get("bin")
        self.unit = options.get("timeUnit")
        kind = "quantitative" if self.aggregate or self.bin else "nominal"
        self.type = options.get("type") or ("temporal" if self.unit else kind)
        self.value = options.get("datum", options.get("value"))
        self.is_constant = self.field is None and self.aggregate is None
        self.key = self.field
        self.end = None  # the field of the ends of bins and units
        self.is_part = False  # whether it is a part of a date, such as the month

    def is_discrete(self):
        return self.type in DISCRETE or self.is_part

    def of(self, row):
        if self.is_constant:
            value = self.value
            return date_text(value) if isinstance(value, dict) else value
        return row.get(self.key)

    def title(self):
        options = self.options
        for said in (options, options.get("axis"), options.get("legend"), options.get("header")):
            if isinstance(said, dict) and "title" in said:
                return text_of(said["title"])
        if self.is_constant:
            return None
        if self.aggregate == "count":
            return "Count of Records"
        if self.aggregate:
            return f"{NAMES.get(self.aggregate, str(self.aggregate).capitalize())} of {self.field}"
        if self.bin and self.bin != "binned":
            return f"{self.field} (binned)"
        if self.unit:
            unit = self.unit.get("unit") if isinstance(self.unit, dict) else self.unit
            return f"{self.field} ({'-'.join(UNITS.findall(str(unit)))})"
        return self.field


def text_of(text):
    if isinstance(text, dict):
        below = text_of(text.get("subtitle"))
        above = text_of(text.get("text"))
        return f"{above}\n{below}" if above and below else above
    if isinstance(text, list):
        return "\n".join(map(str, text))
    return str(text) if text not in (None, "") else None


def date_text(date):
    """A date that is given by its parts."""
    months = {name.lower(): at for at, name in enumerate(data.MONTHS, 1)}
    month = date.get("month", 1)
    month = months.get(str(month)[:3].lower(), month)
    return f"{date.get('year', 2012):04}-{month:02}-{date.get('date', 1):02}"


def number(value, default):
    found = plots.number_of(value)
    return found if math.isfinite(found) else default


def chosen(options):
    """An encoding while nothing is selected: what it says then, or what it says of all else."""
    condition = options.get("condition")
    if isinstance(condition, dict) and "param" in condition and condition.get("empty", True):
        options = {
            name: value for name, value in options.items() if name not in ("condition", "value")
        }
        return options | condition
    return options


def scale_of(channel):
    scale = channel.options.get("scale")
    return scale if isinstance(scale, dict) else {}


def is_down(order):
    if isinstance(order, dict):
        return order.get("order") == "descending"
    return order == "descending" or isinstance(order, str) and order.startswith("-")


def index_of(names, name):
    name = plots.name_of(name)
    return next((at for at, one in enumerate(names) if plots.name_of(one) == name), 0)


def middle_of(channel, low, high):
    if channel.type == "temporal":
        return plots.date_at((plots.days_of(low) + plots.days_of(high)) / 2).isoformat()
    return (low + high) / 2
