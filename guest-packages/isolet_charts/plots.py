"""Plots as plain data, whichever library they come from: panels with axes and series. What they say
is described here, without matplotlib; `drawing.py` draws them.
"""

import datetime
import math
import re

from . import limits

DATE = re.compile(r"-?\d{4}[-/]\d{1,2}([-/]\d{1,2}([T ].*)?)?$")
MOST_CELLS = 1_000_000  # of one heat map
MOST_TICKS = 50
EPOCH = datetime.datetime(1970, 1, 1)


class Plot:
    """A figure. Its panels are in a tree, or have a place as fractions of an area each."""

    def __init__(self, width, height):
        self.width = width  # in pixels of a page, of which an inch has 96
        self.height = height
        self.title = None
        self.panels = []
        self.tree = None  # ("row" or "column", trees), or a list of panels over each other
        self.notes = []  # of the figure: (x, y, text, options), as fractions of the area
        self.missing = []  # names of what is not drawn
        self.legend = None  # its place: (x, y, whether it is flat); beside the area without
        self.legend_title = None
        self.has_legend = True
        self.style = {}


class Panel:
    """A pair of axes and the series on them."""

    def __init__(self, x=None, y=None, place=(0, 0, 1, 1)):
        self.title = None
        self.x = x or Axis()
        self.y = y or Axis()
        self.place = place  # left, bottom, right, top
        self.size = None  # in pixels, in a tree
        self.is_equal = False  # whether both axes have the same scale
        self.is_over = False  # whether it lies over the panel before, with an axis of its own
        self.series = []
        self.lines = []  # x and y of those so far, to fill between
        self.stacks = {}  # by group: what is on each place so far
        self.notes = []  # at values of the axes: (x, y, text, options)

    def fill_categories(self):
        """Gives categorical axes the names of all series, in their order."""
        for series in self.series:
            pair = (self.y, self.x) if series.lies else (self.x, self.y)
            for axis, values in zip(pair, (series.x, series.y)):
                if axis.scale == "categorical" and series.kind != "pie":
                    axis.places(values)


class Axis:
    def __init__(self):
        self.title = None
        self.scale = "linear"  # or log, symlog, datetime, categorical
        self.categories = []  # what a categorical one has, in order; axes may share the list
        self.range = None  # both ends, in places of the axis; either may be None
        self.ticks = None  # (place, label) of each, if they are given
        self.unit = None  # what stands before or after each number: "$", "%"
        self.is_reversed = False
        self.is_shown = True  # whether its ticks and title are
        self.has_labels = True  # whether its ticks have any
        self.has_grid = None  # None: as the axis and the style have it
        self.from_zero = False
        self.totals = {}  # by category, to sort them by
        self.group = self  # axes of the same group have the same range

    def place(self, value):
        """Where a value is: a float. NaN has no place."""
        if self.scale == "categorical":
            value = name_of(value)
            if value not in self.categories:
                self.categories.append(value)
            return float(self.categories.index(value))
        if self.scale == "datetime":
            return days_of(value)
        return number_of(value)

    def places(self, values):
        if self.scale != "categorical":
            return [self.place(value) for value in values]
        known = {name: float(at) for at, name in enumerate(self.categories)}
        for name in map(name_of, values):
            if name not in known:
                known[name] = float(len(known))
                self.categories.append(name)
        return [known[name_of(value)] for value in values]

    def plain(self, value):
        """A value as JSON has it."""
        if self.scale == "categorical":
            return name_of(value)
        if self.scale == "datetime":
            date = date_of(value)
            return date.isoformat() if date else None
        return plain_number(number_of(value))


class Series:
    """What is drawn in one go: `kind` says how, and what the other attributes mean.

    line: points, joined; scatter: points; text: texts at points; bar: `y` is its length; box and
    violin: `x` has a place for each list of numbers in `y`; pie: `x` are names, `y` parts;
    heatmap: `z` has a row for each of `y`; rule: lines across the panel at `x` or at `y`;
    segments: from `x` and `y` to `x_end` and `y_end`; polygon: its corners.
    """

    label = None
    color = None
    colors = None  # of each point
    values = None  # numbers of the points that `scale` has colors for
    scale = None
    sizes = None  # of the points: diameters in pixels, or one for all
    symbol = "o"
    is_hollow = False
    has_markers = False
    alpha = None
    width = None
    dash = None
    step = None
    base = None  # where bars and areas begin
    has_area = False
    lies = False  # bars, boxes: along x
    slot = (0, 1)  # of bars beside each other: which, and of how many
    widths = None  # of bars, in places of the axis
    errors = None  # lengths below and above the points
    texts = None
    hole = 0
    order = None
    names = None  # of the numbers in a heat map, if it is one of names
    in_legend = True
    is_told = True  # in the chart data
    own = None  # what lies between the base and `y`, where parts are stacked
    offset = None  # of texts from their points, in points of 1/72 inch
    text_options = None
    text_outside = True  # bars: whether texts are beyond their ends
    edge = None  # the color around bars
    face = None  # the color inside of boxes
    median_color = None
    inset = 0.0  # of quantiles
    is_hidden = False  # boxes: whether only their points are drawn
    has_box = False  # violins: whether they have boxes inside
    outside = True  # boxes: whether points outside are drawn; None: all points
    write = None  # pies: makes the text of a part, from its name, its size and the whole

    def __init__(self, kind, x=(), y=(), **options):
        self.kind = kind
        self.x = x
        self.y = y
        self.z = self.x_end = self.y_end = None
        self.__dict__.update(options)
        self.known_boxes = None

    def boxes(self):
        """The five numbers of each list, and what lies outside; None of a list without any."""
        if self.known_boxes is None:
            self.known_boxes = [box_of(numbers, self.inset) for numbers in self.y]
        return self.known_boxes


class ColorScale:
    """Colors of numbers, with a bar that tells them."""

    def __init__(self, colors, low=None, high=None, title=None, is_shown=True):
        self.colors = colors  # the name of a map of matplotlib, or (fraction, color) of each
        self.low, self.high = low, high
        self.middle = None
        self.title = title
        self.is_shown = is_shown


# Values


def name_of(value):
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, (list, tuple)):
        return ", ".join(map(name_of, value))
    return "" if value is None else str(value)


def number_of(value):
    if isinstance(value, (int, float)):
        return float(value)
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def numbers_of(values):
    """The numbers among values, without those that are missing."""
    numbers = map(number_of, values)
    return [number for number in numbers if math.isfinite(number)]


def plain_number(number):
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


def date_of(value):
    """A date and time, without a zone; None if it is none. A number counts milliseconds."""
    if isinstance(value, datetime.datetime):
        return value
    try:
        if isinstance(value, (int, float)):
            return EPOCH + datetime.timedelta(milliseconds=value)
        if not isinstance(value, str) or not DATE.match(value):
            return None
        value = value.replace("/", "-")
        day, _, time = value.replace("T", " ").partition(" ")
        year, month, *rest = day.split("-")
        day = f"{year}-{int(month):02}-{int(rest[0]) if rest else 1:02}"
        return datetime.datetime.fromisoformat(f"{day} {time}".strip()).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None


def days_of(value):
    """The place of a date on an axis: days since 1970, as matplotlib counts them."""
    date = date_of(value)
    return (date - EPOCH) / datetime.timedelta(days=1) if date else math.nan


def date_at(days):
    return EPOCH + datetime.timedelta(days=days)


def mean(numbers):
    return math.fsum(numbers) / len(numbers)


def variance(numbers, less=0):
    """The variance of numbers, or with 1 less that of what they are a sample of."""
    middle = mean(numbers)
    return sum([(one - middle) ** 2 for one in numbers]) / max(len(numbers) - less, 1)


def quantile(numbers, part, inset=0.0):
    """A quantile of sorted numbers. With an inset of 0.5 the first stands for half a step, as
    plotly has it.
    """
    at = part * (len(numbers) - 1 + 2 * inset) - inset
    at = min(max(at, 0), len(numbers) - 1)
    low = math.floor(at)
    high = min(low + 1, len(numbers) - 1)
    return numbers[low] + (numbers[high] - numbers[low]) * (at - low)


def box_of(numbers, inset=0.0):
    """Five numbers and what lies outside, as the chart data has it; None without numbers."""
    if isinstance(numbers, dict):
        return numbers
    numbers = sorted(numbers_of(numbers))
    if not numbers:
        return None
    first, median, third = (quantile(numbers, part, inset) for part in (0.25, 0.5, 0.75))
    reach = 1.5 * (third - first)
    inside = [one for one in numbers if first - reach <= one <= third + reach] or [median]
    return {
        "min": min(inside[0], first),
        "first_quartile": first,
        "median": median,
        "third_quartile": third,
        "max": max(inside[-1], third),
        "outliers": [one for one in numbers if not inside[0] <= one <= inside[-1]],
    }


def density(numbers, places, bandwidth=None):
    """A smooth density of numbers at some places, by kernels of Gauss."""
    count = len(numbers)
    deviation = math.sqrt(variance(numbers, 1))
    numbers = sorted(numbers)
    spread = (quantile(numbers, 0.75) - quantile(numbers, 0.25)) / 1.349
    spread = min(deviation, spread) or deviation or abs(numbers[0]) or 1
    bandwidth = bandwidth or 1.059 * spread * count**-0.2
    scale = count * bandwidth * math.sqrt(2 * math.pi)
    numbers = numbers[:: count // 2000 + 1]
    scale *= len(numbers) / count
    return [
        sum(math.exp(-(((place - one) / bandwidth) ** 2) / 2) for one in numbers) / scale
        for place in places
    ]


def round_up(size, steps=(1, 2, 5, 10)):
    """The next round number."""
    base = 10.0 ** math.floor(math.log10(size))
    return base * next((step for step in steps if step >= size / base * (1 - 1e-9)), 10)


def round_ticks(low, high, count=6):
    """Round numbers from one to the other."""
    if not (math.isfinite(high - low) and high > low):
        return [low] if math.isfinite(low) else []
    step = round_up((high - low) / count)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]


# What a plot says


def describe(plot):
    """The chart of a plot, a `superchart` of several, or None if there is none."""
    panels = plot.panels[: limits.MOST_AXES]
    found = [chart for panel in panels for chart in charts_of(panel)]
    if not found:
        return None
    title = plain_title(plot.title)
    if len(found) == 1:
        found[0]["title"] = found[0]["title"] or title
        return found[0]
    return {"type": "superchart", "title": title, "elements": found}


def plain_title(title):
    return title.replace("\n", " ") if title else None


def charts_of(panel):
    """The charts of a panel: one, unless it has series of several shapes."""
    found = []
    for kind, kinds, elements_of in SHAPES:
        some = [series for series in panel.series if series.kind in kinds and series.is_told]
        if not some:
            continue
        if kind == "scatter" and all(series.kind == "line" for series in some):
            kind = "line"
        elements = [element for series in some for element in elements_of(panel, series)]
        chart = {"type": kind, "title": plain_title(panel.title), "elements": elements}
        if kind != "pie":
            chart |= axis("x", panel, panel.x) | axis("y", panel, panel.y)
        if kind in ("bar", "box_and_whisker") and any(series.lies for series in some):
            chart["orientation"] = "horizontal"
        found.append(chart)
    return found


def axis(name, panel, axis):
    ticks = ticks_of(name, panel, axis)
    return {
        f"{name}_label": plain_title(axis.title),
        f"{name}_ticks": [tick for tick, _ in ticks],
        f"{name}_tick_labels": [label for _, label in ticks],
        f"{name}_scale": axis.scale,
    }


def ticks_of(name, panel, axis):
    """Places of an axis and what they are called. How many a picture has depends on its size."""
    if axis.scale == "categorical":
        return list(enumerate(axis.categories[:MOST_TICKS]))
    if axis.ticks:
        return axis.ticks[:MOST_TICKS]
    places = sorted(extent(name, panel, axis))
    if not places:
        return []
    low, high = places[0], places[-1]
    if axis.range and None not in axis.range:
        low, high = sorted(axis.range)
    if axis.scale == "datetime":
        ticks = [date_at(low + (high - low) * part / 4).isoformat() for part in range(5)]
        return [(tick, tick[:10] if high - low > 5 else tick[:16]) for tick in ticks]
    if axis.scale == "log" and low > 0:
        ticks = [10.0**power for power in range(math.ceil(math.log10(low)), 300)]
        ticks = [tick for tick in ticks if tick <= high]
    else:
        ticks = round_ticks(low, high)
    return [(plain_number(tick), f"{tick:g}") for tick in ticks]


def extent(name, panel, axis):
    """The least and the most that the series have along an axis."""
    found = []
    for series in panel.series:
        boxes = series.kind in ("box", "violin")
        is_length = (name == "x") == series.lies
        if series.kind == "pie":
            continue
        if series.kind == "bar" and is_length:
            base = series.base or [0] * len(series.y)
            found += [a + b for a, b in zip(base, map(number_of, series.y))] + base
        elif boxes and is_length:
            for box in filter(None, series.boxes()):
                found += [box["min"], box["max"], *box["outliers"]]
        else:
            values = series.x if (name == "x") != (series.lies and series.kind != "line") else None
            values = series.y if values is None else values
            found += axis.places(values) if axis.scale == "datetime" else map(number_of, values)
    found = [place for place in found if math.isfinite(place)]
    return (min(found), max(found)) if found else ()


def points_of(panel, series):
    """The points of a line; those without a place are null."""
    y = series.y if series.own is None else series.own
    points = zip(series.x[: limits.MOST_POINTS], y[: limits.MOST_POINTS])
    points = [[panel.x.plain(x), panel.y.plain(y)] for x, y in points]
    described = {"label": series.label, "points": points}
    if len(series.x) > limits.MOST_POINTS:
        described["points_total"] = len(series.x)
    return [described]


def bars_of(panel, series):
    along, across = (panel.y, panel.x) if series.lies else (panel.x, panel.y)
    found = {}
    for at, value in zip(series.x, series.y):
        name, value = name_of(along.plain(at)), across.plain(value)
        known = found.get(name)
        # Parts of one bar on each other.
        if isinstance(known, (int, float)) and isinstance(value, (int, float)):
            value += known
        found[name] = value
        if len(found) == limits.MOST_POINTS:
            break
    return [{"label": name, "group": series.label, "value": found[name]} for name in found]


def wedges_of(panel, series):
    parts = [max(number_of(part), 0) if part is not None else 0 for part in series.y]
    whole = sum(part for part in parts if math.isfinite(part)) or 1
    return [
        {"label": name_of(name), "angle": plain_number(360 * part / whole), "radius": 1}
        for name, part in zip(series.x[: limits.MOST_POINTS], parts)
    ]


def boxes_of(panel, series):
    along = panel.y if series.lies else panel.x
    found = []
    for at, box in zip(series.x[: limits.MOST_POINTS], series.boxes()):
        if box is None:
            continue
        name = name_of(along.plain(at))
        label = f"{name}, {series.label}" if series.label and series.slot[1] > 1 else name
        box = box | {"outliers": box["outliers"][: limits.MOST_POINTS]}
        found.append({"label": label or series.label} | box)
    return found


def cells_of(panel, series):
    """The cells of a heat map, as bars have it."""
    found = []
    for y, row in zip(series.y, series.z):
        for x, value in zip(series.x, row):
            if len(found) == limits.MOST_POINTS:
                return found
            names = {"label": name_of(panel.x.plain(x)), "group": name_of(panel.y.plain(y))}
            value = plain_number(number_of(value))
            if series.names and value is not None:
                value = name_of(series.names[value])
            found.append(names | {"value": value})
    return found


SHAPES = (
    ("pie", {"pie"}, wedges_of),
    ("box_and_whisker", {"box", "violin"}, boxes_of),
    ("bar", {"bar"}, bars_of),
    ("scatter", {"scatter", "line", "text"}, points_of),
    ("unknown", {"heatmap"}, cells_of),
)
