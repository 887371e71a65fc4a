"""Numbers as d3's formats write them, and templates of plotly with such numbers."""

import html
import re

from . import plots

FORMAT = re.compile(r"%\{(\w+)(?::([^}]*))?\}")
DIGITS = re.compile(r"([$]?)(,?)(?:\.(\d+))?([fs%deg]?)$")


def written(template, values):
    """A template with the numbers and names that it asks for."""

    def put(match):
        value = values.get(match[1])
        return "" if value is None else formatted(value, match[2] or "")

    return html.unescape(re.sub(r"<[^>]{0,200}>", " ", FORMAT.sub(put, str(template))))


def formatted(value, form):
    """A number in one of d3's simple formats."""
    found = DIGITS.match(form)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return plots.name_of(value)
    if not found or not form:
        return f"{value:.6g}" if isinstance(value, float) else str(value)
    dollar, comma, digits, kind = found.groups()
    digits = min(int(digits), 12) if digits else None
    if kind == "%":
        return f"{value * 100:{comma}.{digits or 0}f}%"
    if kind == "s":
        for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
            if abs(value) >= size:
                return f"{dollar}{value / size:.{digits or 3}g}{letter}"
        return f"{dollar}{value:.{digits or 3}g}"
    if kind == "f" or not kind and digits is not None:
        return f"{dollar}{value:{comma}.{6 if digits is None else digits}f}"
    return f"{dollar}{value:{comma}.{digits or 0}f}" if kind == "d" else f"{dollar}{value:{comma}}"
