"""Numbers, dates and names counted in bins, as plotly's histograms have it."""

import bisect
import collections
import itertools
import math

from . import plots

MOST_BINS = 2000


def prepare(panel, traces):
    """Gives each trace its `bars`: places, lengths and widths. Histograms share their bins."""
    found = {}
    for trace in traces:
        if trace.get("type") == "histogram":
            x, y = listed(trace.get("x")), listed(trace.get("y"))
            if "orientation" not in trace and y and not x:
                trace["orientation"] = "h"
            lies = trace.get("orientation") == "h"
            name = "y" if lies else "x"
            values = y if lies else x
            if not values:
                values, name = (x, "x") if lies else (y, "y")
            found.setdefault(name, []).append((trace, values))
        else:
            trace["bars"] = bars_of(panel, trace)
    for name, some in found.items():
        lies = some[0][0].get("orientation") == "h"
        axis, across = (panel.y, panel.x) if lies else (panel.x, panel.y)
        across.scale = "linear" if across.scale == "categorical" else across.scale
        edges = None
        if axis.scale != "categorical":
            every = [place for _, values in some for place in axis.places(values)]
            options = next((trace for trace, _ in some if trace.get(f"nbins{name}")), some[0][0])
            options = next((trace for trace, _ in some if trace.get(f"{name}bins")), options)
            edges = edges_of(axis, every, options.get(f"{name}bins"), options.get(f"nbins{name}"))
        for trace, values in some:
            weights = listed(trace.get("x" if lies else "y"))
            trace["bars"] = histogram(axis, values, weights, edges, trace)
        across.from_zero = True


def listed(value):
    return value if isinstance(value, list) else []


def bars_of(panel, trace):
    lies = trace.get("orientation") == "h"
    at, values = listed(trace.get("y" if lies else "x")), listed(trace.get("x" if lies else "y"))
    axis = panel.y if lies else panel.x
    at = at or list(range(len(values)))
    widths = trace.get("width")
    widths = widths if isinstance(widths, list) else None if widths is None else [widths] * len(at)
    if widths is not None:
        unit = 86_400_000 if axis.scale == "datetime" else 1
        widths = [plots.number_of(width) / unit for width in widths]
    count = min(len(at), len(values))
    if axis.scale != "categorical" and widths is None and axis.scale == "datetime":
        widths = None
    return at[:count], values[:count], widths


def edges_of(axis, places, given=None, count=None):
    """Round edges of bins for places, as many as plotly would choose."""
    places = sorted(place for place in places if math.isfinite(place))
    if not places:
        return [0.0, 1.0]
    low, high = places[0], places[-1]
    given = given if isinstance(given, dict) else {}
    size = given.get("size")
    dates = axis.scale == "datetime"
    months = None
    if isinstance(size, str) and size[:1] == "M" and size[1:].isdigit():
        months = int(size[1:]) or 1
    elif size is not None:
        size = plots.number_of(size) / (86_400_000 if dates else 1)
    if months is None and (size is None or not (math.isfinite(size) and size > 0)):
        if isinstance(count, (int, float)) and count > 0:
            rough = (high - low) / count
        else:
            rough = 2 * math.sqrt(plots.variance(places)) / len(places) ** 0.4
        if rough <= 0:
            return [low - 0.5, low + 0.5]
        distinct = set(places[:: len(places) // 1000 + 1])
        if count is None and len(distinct) < 100:
            distinct = sorted(set(places))
            rough = max(rough, min((b - a for a, b in itertools.pairwise(distinct)), default=0))
        if dates and rough > 20:
            months = next((one for one in (1, 3, 6, 12, 24, 60, 120) if one * 30.5 >= rough), 120)
        elif dates:
            sizes = (1 / 1440, 1 / 96, 1 / 24, 1 / 8, 1 / 4, 1 / 2, 1, 2, 7, 14)
            size = next((one for one in sizes if one >= rough), 14)
        else:
            size = plots.round_up(rough, (1, 2, 5, 10))
            if size < rough * 1.0001 and count is None:
                size = plots.round_up(rough * 1.01, (2, 5, 10))
    if months:
        return month_edges(low, high, months)
    start = given.get("start")
    start = axis.place(start) if start is not None else math.nan
    if not math.isfinite(start):
        start = math.floor(low / size + 1e-9) * size
        if not dates and size >= 1 and all(place.is_integer() for place in places):
            start -= 0.5
    size = max(size, (high - start) / MOST_BINS)
    last = math.floor((high - start) / size + 1e-9) + 1
    return [start + size * number for number in range(last + 1)]


def month_edges(low, high, months):
    first = plots.date_at(low)
    number = (first.year * 12 + first.month - 1) // months * months
    edges = []
    while len(edges) < MOST_BINS:
        year, month = divmod(number, 12)
        edges.append(plots.days_of(f"{year:04}-{month + 1:02}-01"))
        if edges[-1] > high or math.isnan(edges[-1]):
            break
        number += months
    return edges


def histogram(axis, values, weights, edges, trace):
    """The bars of a histogram."""
    function = trace.get("histfunc", "count")
    if edges is None:
        names = [plots.name_of(value) for value in values]
        groups = {name: [] for name in dict.fromkeys(names)}
        places, widths = list(groups), None
    else:
        groups = {number: [] for number in range(len(edges) - 1)}
        names = [bisect.bisect_right(edges, place) - 1 for place in axis.places(values)]
        places = [(a + b) / 2 for a, b in zip(edges, edges[1:])]
        widths = [b - a for a, b in zip(edges, edges[1:])]
        if axis.scale == "datetime":
            places = [plots.date_at(place).isoformat() for place in places]
    if weights and function != "count":
        for name, weight in zip(names, weights):
            if name in groups:
                groups[name].append(plots.number_of(weight))
        lengths = [of_function(function, plots.numbers_of(group)) for group in groups.values()]
    else:
        counts = collections.Counter(names)
        lengths = [counts[name] for name in groups]
    norm = str(trace.get("histnorm") or "")
    whole = sum(length or 0 for length in lengths) or 1
    if "percent" in norm or "probability" in norm:
        part = 100 if "percent" in norm else 1
        lengths = [(length or 0) * part / whole for length in lengths]
        whole = 1
    if "density" in norm and widths:
        whole = whole if "probability" in norm else 1
        lengths = [(length or 0) / width / whole for length, width in zip(lengths, widths)]
    cumulative = trace.get("cumulative")
    if isinstance(cumulative, dict) and cumulative.get("enabled"):
        total = 0
        for at, length in enumerate(lengths):
            total = lengths[at] = total + (length or 0)
    return places, lengths, widths


def of_function(name, numbers):
    if not numbers:
        return 0 if name in ("count", "sum") else None
    functions = {"avg": plots.mean, "min": min, "max": max, "sum": math.fsum}
    number = functions[name](numbers) if name in functions else len(numbers)
    return plots.plain_number(float(number))


def grid(panel, x, y, z, trace):
    """The cells of a histogram of two: the edges or names along x and y, and rows of counts."""
    sides, numbers = [], []
    for name, axis, values in (("x", panel.x, x), ("y", panel.y, y)):
        if axis.scale == "categorical":
            names = [plots.name_of(value) for value in values]
            side = list(dict.fromkeys(names))
            known = {one: at for at, one in enumerate(side)}
            numbers.append([known[one] for one in names])
        else:
            places = axis.places(values)
            count = trace.get(f"nbins{name}") or min(max(int(len(places) ** 0.25 * 4), 4), 50)
            edges = edges_of(axis, places, trace.get(f"{name}bins"), count)
            numbers.append([bisect.bisect_right(edges, place) - 1 for place in places])
            side = [(a + b) / 2 for a, b in zip(edges, edges[1:])]
            if axis.scale == "datetime":
                side = [plots.date_at(place).isoformat() for place in side]
        sides.append(side)
    if not sides[0] or not sides[1] or len(sides[0]) * len(sides[1]) > plots.MOST_CELLS:
        return None
    cells = {}
    weights = z if z and trace.get("histfunc", "count") != "count" else [1] * len(x)
    for column, row, weight in zip(*numbers, weights):
        cells.setdefault((row, column), []).append(plots.number_of(weight))
    function = trace.get("histfunc", "count")
    rows = [
        [of_function(function, cells.get((row, column), [])) for column in range(len(sides[0]))]
        for row in range(len(sides[1]))
    ]
    return *sides, rows
