"""The data of Vega-Lite's charts: rows, what becomes of them, and groups of them."""

import json
import math
import re

from . import plots

MOST_ROWS = 200_000
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
DAYS = "Sun Mon Tue Wed Thu Fri Sat".split()
COMPARISONS = {
    "equal": lambda a, b: a == b,
    "lt": lambda a, b: a < b,
    "lte": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "gte": lambda a, b: a >= b,
    "oneOf": lambda a, b: a in b,
    "range": lambda a, b: (b[0] is None or a >= b[0]) and (b[1] is None or a <= b[1]),
}


# What altair writes for `datum.x > 1`; all other expressions are not evaluated.
COMPARISON = re.compile(
    r"\(?datum(?:\.(\w+)|\[['\"]([^'\"]+)['\"]\])\s*(===?|!==?|<=?|>=?)\s*"
    r"(-?[\d.]+(?:e[-+]?\d+)?|'[^'\\]*'|\"[^\"\\]*\"|true|false|null)\)?$"
)
OPERATORS = {"=": "equal", "<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}


class NotDrawn(Exception):
    """Says what a chart has that is not drawn here."""


def rows_of(data, datasets, before):
    """The rows of a chart: its own, those of a name, or those of the charts around it."""
    if data is None:
        return before
    if not isinstance(data, dict) or "url" in data:
        raise NotDrawn("data of an address")
    values = data.get("values")
    if values is None and data.get("name") in datasets:
        values = datasets[data["name"]]
    if "sequence" in data:
        values = sequence(data["sequence"])
    if not isinstance(values, list):
        raise NotDrawn("data without values")
    values = values[:MOST_ROWS]
    return [row if isinstance(row, dict) else {"data": row} for row in values]


def sequence(options):
    start, stop = plots.number_of(options.get("start")), plots.number_of(options.get("stop"))
    step = plots.number_of(options.get("step", 1))
    if not (step and math.isfinite(start + stop + step)) or (stop - start) / step > MOST_ROWS:
        return []
    count = math.ceil((stop - start) / step)
    return [{options.get("as", "data"): start + step * at} for at in range(max(count, 0))]


def transformed(rows, transforms):
    for transform in transforms or []:
        kind = next((name for name in TRANSFORMS if name in transform), None)
        if kind is None:
            raise NotDrawn(f"transform {next(iter(transform), '')}")
        rows = TRANSFORMS[kind](rows, transform)
    return rows


def filtered(rows, transform):
    test = passes(transform["filter"])
    return [row for row in rows if test(row)]


def passes(condition):
    """A test of rows. Expressions are not evaluated."""
    if isinstance(condition, str):
        condition = compared(condition)
    if not isinstance(condition, dict):
        raise NotDrawn("filter by an expression")
    if "param" in condition:  # nothing is selected, so all is
        return lambda row: True
    for name, join in (("and", all), ("or", any)):
        if name in condition:
            tests = [passes(one) for one in condition[name]]
            return lambda row: join(test(row) for test in tests)
    if "not" in condition:
        test = passes(condition["not"])
        return lambda row: not test(row)
    field = condition.get("field")
    if "valid" in condition:
        return lambda row: row.get(field) is not None
    name = next((one for one in COMPARISONS if one in condition), None)
    if field is None or name is None or isinstance(condition[name], dict):
        raise NotDrawn("filter")
    unit, compare, other = condition.get("timeUnit"), COMPARISONS[name], condition[name]

    def test(row):
        value = row.get(field)
        if unit:
            date = plots.date_of(value)
            value = getattr(date, unit, None) if unit in ("year", "month") else None
        try:
            return compare(value, other)
        except TypeError:
            return False

    return test


def compared(expression):
    """A comparison of a field as a condition; None if the expression is another."""
    found = COMPARISON.match(expression.strip())
    if not found:
        return None
    value = found[4]
    value = value[1:-1] if value[0] in "'\"" else json.loads(value)
    field, operator = found[1] or found[2], found[3]
    if operator in ("!=", "!=="):
        return {"not": {"field": field, "equal": value}}
    name = OPERATORS["=" if operator.startswith("==") else operator]
    return {"field": field, name: value}


def aggregated(rows, transform):
    names = transform.get("groupby", [])
    found = []
    for key, group in grouped(rows, names):
        row = dict(zip(names, key))
        for one in transform["aggregate"]:
            row[one.get("as")] = aggregate(one.get("op"), one.get("field"), group)
        found.append(row)
    return found


def joined(rows, transform):
    """Rows with aggregates of their groups."""
    rows = [dict(row) for row in rows]
    for _, group in grouped(rows, transform.get("groupby", [])):
        for one in transform["joinaggregate"]:
            value = aggregate(one.get("op"), one.get("field"), group)
            for row in group:
                row[one.get("as")] = value
    return rows


def folded(rows, transform):
    key, value = transform.get("as", ["key", "value"])
    return [row | {key: name, value: row.get(name)} for row in rows for name in transform["fold"]]


def with_bins(rows, transform):
    name = transform.get("as")
    name, *end = name if isinstance(name, list) else [name, f"{name}_end"]
    edges = edges_of(rows, transform.get("field"), transform["bin"])
    found = []
    for row in rows:
        low, high = bin_of(edges, row.get(transform.get("field")))
        found.append(row | {name: low, end[0] if end else f"{name}_end": high})
    return found


def with_units(rows, transform):
    unit, field = transform["timeUnit"], transform.get("field")
    return [row | {transform.get("as"): unit_of(unit, row.get(field))[0]} for row in rows]


def with_line(rows, transform):
    """The line through points."""
    if transform.get("method", "linear") != "linear":
        raise NotDrawn("regression that is not linear")
    y_name, x_name = transform["regression"], transform["on"]
    names = transform.get("groupby", [])
    found = []
    for key, group in grouped(rows, names):
        pairs = [
            (plots.number_of(row.get(x_name)), plots.number_of(row.get(y_name))) for row in group
        ]
        pairs = [pair for pair in pairs if all(map(math.isfinite, pair))]
        if len({x for x, _ in pairs}) < 2:
            continue
        x_mean, y_mean = (plots.mean(side) for side in zip(*pairs))
        slope = math.fsum((x - x_mean) * (y - y_mean) for x, y in pairs)
        slope /= math.fsum((x - x_mean) ** 2 for x, _ in pairs)
        start = y_mean - slope * x_mean
        for x in (min(pairs)[0], max(pairs)[0]):
            found.append(dict(zip(names, key)) | {x_name: x, y_name: start + slope * x})
    return found


def with_density(rows, transform):
    field, names = transform["density"], transform.get("groupby", [])
    x_name, y_name = transform.get("as", ["value", "density"])
    everything = plots.numbers_of(row.get(field) for row in rows)
    if not everything:
        return []
    low, high = transform.get("extent") or (min(everything), max(everything))
    places = [low + (high - low) * at / 100 for at in range(101)]
    found = []
    for key, group in grouped(rows, names):
        numbers = plots.numbers_of(row.get(field) for row in group)
        heights = plots.density(numbers, places, transform.get("bandwidth")) if numbers else []
        part = len(numbers) if transform.get("counts") else 1
        for x, y in zip(places, heights):
            found.append(dict(zip(names, key)) | {x_name: x, y_name: y * part})
    return found


def with_window(rows, transform):
    """Rows with sums, means and ranks of those before them."""
    frame = transform.get("frame", [None, 0])
    for sort in reversed(transform.get("sort", [])):
        is_down = sort.get("order") == "descending"
        rows = sorted(rows, key=lambda row: order_key(row.get(sort["field"])), reverse=is_down)
    rows = [dict(row) for row in rows]
    for _, group in grouped(rows, transform.get("groupby", [])):
        for at, row in enumerate(group):
            low = 0 if frame[0] is None else max(at + frame[0], 0)
            high = len(group) if frame[1] is None else at + frame[1] + 1
            for one in transform["window"]:
                name = one.get("op")
                if name in ("row_number", "rank", "dense_rank"):
                    value = at + 1
                else:
                    value = aggregate(name, one.get("field"), group[low:high])
                row[one.get("as")] = value
    return rows


TRANSFORMS = {
    "filter": filtered,
    "aggregate": aggregated,
    "joinaggregate": joined,
    "fold": folded,
    "bin": with_bins,
    "timeUnit": with_units,
    "regression": with_line,
    "density": with_density,
    "window": with_window,
}


def grouped(rows, names):
    """Rows in groups of the same values, in the order of the data."""
    groups = {}
    for row in rows:
        key = tuple(hashable(row.get(name)) for name in names)
        groups.setdefault(key, []).append(row)
    return groups.items()


def hashable(value):
    return str(value) if isinstance(value, (list, dict)) else value


def aggregate(name, field, rows):
    if name == "count":
        return len(rows)
    values = [row.get(field) for row in rows]
    if name in ("distinct", "valid", "missing"):
        valid = [value for value in values if value is not None]
        counts = {"distinct": len({*map(hashable, values)}), "valid": len(valid)}
        return counts.get(name, len(values) - len(valid))
    if name in ("min", "max") and any(isinstance(value, str) for value in values):
        return (min if name == "min" else max)(value for value in values if isinstance(value, str))
    numbers = plots.numbers_of(values)
    if name not in FUNCTIONS:
        raise NotDrawn(f"aggregate {name}")
    if not numbers:
        return 0 if name == "sum" else None
    return FUNCTIONS[name](numbers)


def error(numbers):
    return math.sqrt(plots.variance(numbers, 1) / len(numbers))


FUNCTIONS = {
    "sum": math.fsum,
    "mean": plots.mean,
    "average": plots.mean,
    "median": lambda numbers: plots.quantile(sorted(numbers), 0.5),
    "min": min,
    "max": max,
    "product": math.prod,
    "stdev": lambda numbers: math.sqrt(plots.variance(numbers, 1)),
    "stdevp": lambda numbers: math.sqrt(plots.variance(numbers)),
    "variance": lambda numbers: plots.variance(numbers, 1),
    "variancep": plots.variance,
    "stderr": error,
    "q1": lambda numbers: plots.quantile(sorted(numbers), 0.25),
    "q3": lambda numbers: plots.quantile(sorted(numbers), 0.75),
    # What a bootstrap comes close to.
    "ci0": lambda numbers: plots.mean(numbers) - 1.96 * error(numbers),
    "ci1": lambda numbers: plots.mean(numbers) + 1.96 * error(numbers),
}


def order_key(value):
    """Sorts numbers before texts, and what is missing last."""
    if value is None:
        return 2, 0, ""
    if isinstance(value, (int, float)):
        return 0, value, ""
    return 1, 0, str(value)


def edges_of(rows, field, options, fallback=10):
    """The edges of bins: round ones, at most `maxbins` of them."""
    options = options if isinstance(options, dict) else {}
    numbers = plots.numbers_of(row.get(field) for row in rows)
    low, high = options.get("extent") or (min(numbers, default=0), max(numbers, default=1))
    step = options.get("step")
    if not step:
        most = max(int(options.get("maxbins", fallback)), 1)
        step = plots.round_up((high - low) / most, (1, 2, 5, 10)) if high > low else 1
    start = math.floor(low / step + 1e-9) * step
    count = min(max(math.ceil((high - start) / step - 1e-9), 1), 2000)
    return [float(f"{start + step * at:.12g}") for at in range(count + 1)]


def bin_of(edges, value):
    number = plots.number_of(value)
    if not math.isfinite(number):
        return None, None
    step = edges[1] - edges[0]
    at = min(max(math.floor((number - edges[0]) / step + 1e-9), 0), len(edges) - 2)
    return edges[at], edges[at + 1]


def unit_of(unit, value):
    """The beginning and the end of a date's unit, or its name and the place of that."""
    unit = str(unit.get("unit") if isinstance(unit, dict) else unit).removeprefix("utc")
    date = plots.date_of(value)
    if date is None:
        return None, None
    if not unit.startswith(("year", "binned")):
        return part_of(unit, date)
    month, day = date.month, date.day
    if "quarter" in unit:
        month, day, months = (month - 1) // 3 * 3 + 1, 1, 3
    elif "month" in unit and not unit.endswith(("date", "hours", "minutes", "seconds")):
        day, months = 1, 1
    elif unit.endswith("year"):
        month, day, months = 1, 1, 12
    else:
        return clock_of(unit, date)
    start = date.replace(month=month, day=day, hour=0, minute=0, second=0, microsecond=0)
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    return start.isoformat(), f"{year:04}-{month + 1:02}-01T00:00:00"


def clock_of(unit, date):
    """The same of a unit of days or less."""
    if "week" in unit:
        date = plots.date_at(plots.days_of(date) - (date.weekday() + 1) % 7)
    sizes = (("seconds", 1 / 86400), ("minutes", 1 / 1440), ("hours", 1 / 24))
    size = next((size for name, size in sizes if unit.endswith(name)), 7 if "week" in unit else 1)
    clear = {"microsecond": 0}
    for name, most in (("second", 1 / 1440), ("minute", 1 / 24), ("hour", 1)):
        if size >= most:
            clear[name] = 0
    start = date.replace(**clear)
    return start.isoformat(), plots.date_at(plots.days_of(start) + size).isoformat()


def part_of(unit, date):
    """A date's part as it is called, and its place among the others."""
    if unit.startswith("month"):
        if "date" in unit:
            return f"{MONTHS[date.month - 1]} {date.day:02}", date.month * 100 + date.day
        return MONTHS[date.month - 1], date.month
    if unit == "quarter":
        quarter = (date.month - 1) // 3 + 1
        return f"Q{quarter}", quarter
    if unit == "day":
        day = (date.weekday() + 1) % 7
        return DAYS[day], day
    if unit.startswith("hours"):
        minutes = date.minute if "minutes" in unit else 0
        return f"{date.hour:02}:{minutes:02}", date.hour * 60 + minutes
    numbers = {"date": date.day, "dayofyear": date.timetuple().tm_yday, "minutes": date.minute}
    numbers |= {"week": int(date.strftime("%U")), "seconds": date.second}
    if unit not in numbers:
        raise NotDrawn(f"time unit {unit}")
    return f"{numbers[unit]}", numbers[unit]
