"""The marks of Vega-Lite's charts as series of plots."""

import math

from . import plots
from . import vega_data as data
from .colors import color_of
from .number_formats import formatted
from .vega_channels import index_of, number, scale_of
from .vega_units import Unit

SYMBOLS = ("o", "s", "^", "P", "D", "v", "X", "*")
SHAPES = {"circle": "o", "square": "s", "cross": "P", "diamond": "D", "triangle-up": "^"}
SHAPES |= {"triangle-down": "v", "triangle": "^", "triangle-right": ">", "triangle-left": "<"}
STEPS = {"step": "mid", "step-after": "post", "step-before": "pre"}


class Mark(Unit):
    """Makes series of what the rows show."""

    def series(self, rows):
        """The series of a panel that shows these rows."""
        maker = MARKS.get(self.kind)
        if maker is None:
            raise data.NotDrawn(f"mark {self.kind}")
        return [one for one in maker(self, rows) if one is not None]

    def lines(self, rows):
        rows = self.aggregated(rows)
        found = []
        order = self.get("order")
        axis = self.get("y") if self.lies_across() else self.get("x")
        for values, some in self.parts(rows):
            some = [row for row in some if self.get("x").of(row) is not None]
            if order is not None and not order.is_constant:
                some = sorted(some, key=lambda row: data.order_key(order.of(row)))
            elif axis is not None:
                some = sorted(some, key=self.along(axis))
            x, y = self.places("x", some), self.places("y", some)
            series = self.new("line", values, x, y, alpha=self.alpha())
            series.step = STEPS.get(self.mark.get("interpolate"))
            series.has_markers = bool(self.mark.get("point"))
            found.append(series)
        return found

    def lies_across(self):
        x, y = self.get("x"), self.get("y")
        return bool(x and y and x.type == "quantitative" and y.type in ("temporal", "ordinal"))

    def along(self, axis):
        """Sorts rows by their place on an axis."""
        if axis.is_discrete():
            known = {name: at for at, name in enumerate(self.categories(axis.name))}
            return lambda row: known.get(plots.name_of(axis.of(row)), 0)
        return lambda row: data.order_key(axis.of(row))

    def areas(self, rows):
        if self.get("x2") or self.get("y2"):
            return self.bands(self.aggregated(rows))
        rows = self.aggregated(rows)
        lies = self.lies()
        along, across = (self.get(name) for name in ("yx" if lies else "xy"))
        parts = self.parts(rows)
        stack = self.stack(across, parts)
        places = {}
        for row in sorted(rows, key=self.along(along)):
            if along.of(row) is not None:
                places.setdefault(data.hashable(along.of(row)))
        places = list(places)
        tops = dict.fromkeys(places, 0.0)
        wholes = self.wholes(rows, along, across)
        if stack == "center":
            tops = {place: -wholes[place] / 2 for place in places}
        found = []
        for values, some in reversed(parts) if stack else parts:
            known = {data.hashable(along.of(row)): number(across.of(row), 0) for row in some}
            at = places if stack else [place for place in places if place in known]
            lengths = [known.get(place, 0.0) for place in at]
            base = [tops[place] if stack else 0.0 for place in at]
            if stack == "normalize":
                lengths = [one / (wholes[place] or 1) for one, place in zip(lengths, at)]
            ends = [low + length for low, length in zip(base, lengths)]
            if stack:
                tops |= zip(at, ends)
            pair = (ends, at) if lies else (at, ends)
            line = self.mark.get("line")
            series = self.new("line", values, *pair, base=base, has_area=True, lies=lies)
            series.width = 2 if line else 0
            series.own = lengths
            series.alpha = self.alpha(0.7 if len(parts) > 1 and not stack or line else 1.0)
            series.step = STEPS.get(self.mark.get("interpolate"))
            if isinstance(self.mark.get("color"), dict):  # a gradient, to the last of its colors
                stops = self.mark["color"].get("stops") or [{}]
                series.color = color_of(stops[-1].get("color"), default=series.color)
            found.append(series)
        return found[::-1] if stack else found

    def bands(self, rows):
        """Areas between two values."""
        lies = bool(self.get("x2"))
        other = self.get("x2" if lies else "y2")
        found = []
        for values, some in self.parts(rows):
            some = sorted(some, key=self.along(self.get("y" if lies else "x")))
            x, y = self.places("x", some), self.places("y", some)
            base = [plots.number_of(other.of(row)) for row in some]
            options = {"base": base, "has_area": True, "lies": lies, "alpha": self.alpha(0.7)}
            series = self.new("line", values, x, y, **options)
            series.width = 0
            found.append(series)
        return found

    def stack(self, across, parts):
        """How lengths are put on each other: "zero", "normalize", "center", or None."""
        said = across.options.get("stack", True) if across else None
        if said in (None, False) or across.is_constant:
            return None
        splits = any(values for values, _ in parts)
        if scale_of(across).get("type") == "log" or not splits and said is True:
            return None
        return "zero" if said is True else said

    def wholes(self, rows, along, across):
        wholes = {}
        for row in rows:
            place = data.hashable(along.of(row)) if along else None
            wholes[place] = wholes.get(place, 0) + abs(number(across.of(row), 0))
        return wholes

    def bars(self, rows):
        rows = self.aggregated(rows)
        lies = self.lies()
        names = "yx" if lies else "xy"
        along, across = self.get(names[0]), self.get(names[1])
        if across is None:
            return []
        other = self.get(f"{names[1]}2")
        parts = self.parts(rows)
        numeric = self.get("color")
        numeric = (
            numeric if numeric and not numeric.is_constant and not numeric.is_discrete() else None
        )
        stack = None if other else self.stack(across, parts)
        offset = self.get(f"{names[0]}Offset")
        offsets = self.categories(offset.name) if offset else []
        wholes = self.wholes(rows, along, across)
        tops = {}
        found = []
        for values, some in reversed(parts) if stack else parts:
            some = sorted(some, key=self.along(along)) if along else some
            at = self.places(names[0], some) or [""] * len(some)
            lengths = [across.of(row) for row in some]
            keys = [(data.hashable(along.of(row)) if along else None) for row in some]
            base = None
            if other:
                base, lengths = lengths, [other.of(row) for row in some]
                if across.type == "temporal":
                    base = [plots.days_of(one) for one in base]
                else:
                    base = [number(one, 0) for one in base]
                    lengths = [number(one, 0) - low for one, low in zip(lengths, base)]
            elif stack:
                if stack == "normalize":
                    lengths = [
                        number(one, 0) / (wholes[key] or 1) for one, key in zip(lengths, keys)
                    ]
                base = []
                for key, length in zip(keys, lengths):
                    key = key, values.get(offset.name) if offset else None, number(length, 0) < 0
                    start = -wholes[key[0]] / 2 if stack == "center" else 0.0
                    base.append(tops.get(key, start))
                    tops[key] = base[-1] + number(length, 0)
                base = base if any(base) else None
            series = self.new("bar", values, at, lengths, base=base, lies=lies)
            series.widths = self.widths(along, some)
            series.width = None
            overlaid = len(parts) > 1 and not stack and not offsets and not along_color(along, self)
            series.alpha = self.alpha(0.7 if overlaid else None)
            if offset and values.get(offset.name) is not None:
                series.slot = index_of(offsets, values[offset.name]), max(len(offsets), 1)
            if numeric:
                series.values = [numeric.of(row) for row in some]
                series.scale = self.colors.scale(numeric, self.kind)
            found.append(series)
        return found[::-1] if stack else found

    def widths(self, along, rows):
        """The widths of bars of bins and of units of dates."""
        if along is None or not along.end or along.is_discrete():
            return None
        pairs = [(along.of(row), row.get(along.end)) for row in rows]
        if along.type == "temporal":
            return [0.92 * (plots.days_of(high) - plots.days_of(low)) for low, high in pairs]
        return [number(high, 1) - number(low, 0) for low, high in pairs]

    def points(self, rows):
        rows = self.aggregated(rows)
        size = self.get("size")
        color = self.get("color")
        numeric = color and not color.is_constant and not color.is_discrete()
        most = 1
        if size and not size.is_constant:
            most = max(
                plots.numbers_of(size.of(row) for row in self.aggregated(self.rows)), default=1
            )
            high = max(plots.numbers_of(scale_of(size).get("range") or []), default=361)
            high = min(high, 5000)
        found = []
        for values, some in self.parts(rows):
            x = self.places("x", some) or [""] * len(some)
            y = self.places("y", some) or [""] * len(some)
            series = self.new("scatter", values, x, y)
            series.symbol = {"square": "s"}.get(self.kind) or SHAPES.get(
                self.mark.get("shape"), "o"
            )
            series.alpha = self.alpha(0.7)
            series.is_hollow = self.kind == "point" and not self.mark.get("filled")
            area = number(size.value if size and size.is_constant else self.mark.get("size"), 30)
            series.sizes = diameter(area)
            if size and not size.is_constant:
                parts = (number(size.of(row), 0) / (most or 1) for row in some)
                series.sizes = [diameter(max(part, 0) * high) for part in parts]
            if values.get("shape") is not None:
                at = index_of(self.categories("shape"), values["shape"])
                series.symbol = SYMBOLS[at % len(SYMBOLS)]
            if self.kind == "tick":
                series.symbol = "|" if self.is_measure("x") or not self.get("y") else "_"
                series.sizes = number(self.mark.get("size"), 14)
            if numeric:
                series.values = [self.colors.number(color, row) for row in some]
                series.scale = self.colors.scale(color, self.kind)
            found.append(series)
        return found

    def texts(self, rows):
        rows = self.aggregated(rows)
        text = self.get("text")
        if not self.get("x") or not self.get("y"):
            if self.get("theta"):
                return []
            raise data.NotDrawn("text without a place")
        found = []
        for values, some in self.parts(rows):
            x, y = self.places("x", some), self.places("y", some)
            written = text.options.get("format", "") if text else ""
            texts = [text.of(row) if text else self.mark.get("text") for row in some]
            series = self.new("text", values, x, y, in_legend=False, is_told=False)
            series.texts = ["" if one is None else formatted(one, written) for one in texts]
            dx, dy = number(self.mark.get("dx"), 0), number(self.mark.get("dy"), 0)
            series.offset = (dx * 0.75, -dy * 0.75)
            options = {"ha": self.mark.get("align"), "va": self.mark.get("baseline")}
            options["va"] = {"middle": "center", "alphabetic": "baseline"}.get(
                options["va"], options["va"]
            )
            allowed = ("left", "right", "center", "top", "bottom", "baseline")
            series.text_options = {
                name: one if one in allowed else "center" for name, one in options.items()
            }
            size = number(self.mark.get("fontSize"), 11)
            series.text_options["fontsize"] = min(max(size * 0.75, 5), 30)
            series.width = None
            found.append(series)
        return found

    def rules(self, rows):
        rows = self.aggregated(rows)
        x, y = self.get("x"), self.get("y")
        x2, y2 = self.get("x2"), self.get("y2")
        found = []
        for values, some in self.parts(rows):
            options = {"alpha": self.alpha(), "is_told": False}
            if x2 or y2:
                if not x or not y:
                    raise data.NotDrawn("rule without a place")
                ends = [
                    [(other or one).of(row) for row in some] for one, other in ((x, x2), (y, y2))
                ]
                starts = self.places("x", some), self.places("y", some)
                series = self.new(
                    "segments", values, *starts, x_end=ends[0], y_end=ends[1], **options
                )
            elif x and y:
                raise data.NotDrawn("rule at points")
            else:
                places = [{*map(data.hashable, self.places(name, some) or [])} for name in "xy"]
                series = self.new("rule", values, *map(list, places), **options)
            series.width = series.width or 1
            found.append(series)
        return found

    def rects(self, rows):
        rows = self.aggregated(rows)
        color, x, y = (self.get(name) for name in ("color", "x", "y"))
        x2, y2 = self.get("x2"), self.get("y2")
        if x2 and not x.bin or y2 and not y.bin:
            found = []
            for row in rows[:500]:
                ends = [
                    [one.of(row), other.of(row)] if other else []
                    for one, other in ((x, x2), (y, y2))
                ]
                if x2 and y2:
                    (a, b), (c, d) = ends
                    ends = [[a, b, b, a], [c, c, d, d]]
                kind = "polygon" if x2 and y2 else "span"
                values = {"color": color.of(row)} if color and not color.is_constant else {}
                series = self.new(kind, values, *ends, alpha=self.alpha(), in_legend=False)
                found.append(series)
            return found
        return self.cells(rows, color, x, y)

    def cells(self, rows, color, x, y):
        """A heat map of the rows."""
        if x is None or y is None or color is None or color.is_constant:
            raise data.NotDrawn("rect without places and colors")
        sides = []
        for channel in (x, y):
            if channel.is_discrete():
                sides.append(self.categories(channel.name))
            else:
                if not channel.end:
                    raise data.NotDrawn("rect at points")
                sides.append(self.lows(channel))
        known = [{name: at for at, name in enumerate(side)} for side in sides]
        cells = [[None] * len(sides[0]) for _ in sides[1]]
        names = [] if not color.is_discrete() else self.colors.names(color, self.rows)
        for row in rows:
            at = [channel.of(row) for channel in (x, y)]
            at = [plots.name_of(one) if c.is_discrete() else one for c, one in zip((x, y), at)]
            if at[0] in known[0] and at[1] in known[1]:
                value = color.of(row)
                value = index_of(names, value) if names else self.colors.number(color, row)
                cells[known[1][at[1]]][known[0][at[0]]] = value
        series = plots.Series("heatmap", *map(list, sides), z=cells, in_legend=False)
        for channel, name in ((x, "x"), (y, "y")):
            if not channel.is_discrete():
                ends = dict.fromkeys(row.get(channel.end) for row in self.rows)
                ends = sorted((end for end in ends if end is not None), key=data.order_key)
                setattr(series, name, [*getattr(series, name), ends[-1]])
        if names:
            colors = [self.colors.of(color, name, self.rows) for name in names]
            last = max(len(names) - 1, 1)
            pairs = [(at / last, one) for at, one in enumerate(colors)]
            pairs = pairs if len(pairs) > 1 else [(0, colors[0]), (1, colors[0])]
            series.scale, series.names = plots.ColorScale(pairs, 0, last, is_shown=False), names
            marks = [
                self.new("scatter", {"color": name}, [], [], symbol="s", is_told=False)
                for name in names
            ]
            return [series, *marks]
        series.scale = self.colors.scale(color, "rect")
        return [series]

    def lows(self, channel):
        """Where the bins or units of a channel begin, without gaps between them."""
        pairs = {(row.get(channel.key), row.get(channel.end)) for row in self.rows}
        pairs = sorted(
            (pair for pair in pairs if None not in pair), key=lambda pair: data.order_key(pair[0])
        )
        found = []
        for low, _ in pairs:
            if found and channel.type != "temporal":
                step = pairs[0][1] - pairs[0][0]
                while low - found[-1] > step * 1.5 and len(found) < 2000:
                    found.append(float(f"{found[-1] + step:.12g}"))
            found.append(low)
        return found

    def arcs(self, rows):
        rows = self.aggregated(rows)
        theta, color = self.get("theta"), self.get("color")
        if theta is None:
            raise data.NotDrawn("arc without theta")
        if self.get("radius") and not self.get("radius").is_constant:
            raise data.NotDrawn("arcs of several radiuses")
        found = {}
        for values, some in self.parts(rows):
            name = values.get("color")
            found[name] = found.get(name, 0) + sum(number(theta.of(row), 0) for row in some)
        series = plots.Series(
            "pie", ["" if name is None else name for name in found], list(found.values())
        )
        series.colors = [self.color({"color": name} if color else None) for name in found]
        outer = number(self.mark.get("outerRadius"), 0) or 140
        series.hole = number(self.mark.get("innerRadius"), 0) / outer
        return [series]

    def boxes(self, rows):
        lies = self.lies()
        along, across = (self.get(name) for name in ("yx" if lies else "xy"))
        offset = self.get("yOffset" if lies else "xOffset")
        offsets = self.categories(offset.name) if offset else []
        found = []
        for values, some in self.parts(rows):
            groups = {}
            for row in some:
                place = data.hashable(along.of(row)) if along else ""
                groups.setdefault(place, []).append(across.of(row))
            lists = list(groups.values())
            if self.mark.get("extent") == "min-max":
                lists = [whole_box(numbers) for numbers in lists]
            series = self.new("box", values, list(groups), lists, lies=lies)
            series.face, series.median_color = series.color, "white"
            if offset and values.get(offset.name) is not None:
                series.slot = index_of(offsets, values[offset.name]), max(len(offsets), 1)
            found.append(series)
        return found

    def errors(self, rows):
        """Bars or bands of what values differ by."""
        lies = self.lies()
        along, across = (self.get(name) for name in ("yx" if lies else "xy"))
        other = self.get("x2" if lies else "y2")
        extent = self.mark.get("extent", "stderr")
        found = []
        for values, some in self.parts(rows):
            places, lows, highs = [], [], []
            for key, group in data.grouped(some, [along.key] if along and along.key else []):
                if other:
                    pair = across.of(group[0]), other.of(group[0])
                else:
                    pair = spread(extent, across.field, group)
                if None not in pair:
                    places.append(key[0] if key else "")
                    lows.append(plots.number_of(pair[0]))
                    highs.append(plots.number_of(pair[1]))
            if along and not along.is_discrete():
                order = sorted(range(len(places)), key=lambda at: data.order_key(places[at]))
                places, lows, highs = ([one[at] for at in order] for one in (places, lows, highs))
            options = {"is_told": False, "in_legend": False}
            if self.kind == "errorband":
                pair = (highs, places) if lies else (places, highs)
                options |= {"base": lows, "has_area": True, "lies": lies, "alpha": self.alpha(0.3)}
                series = self.new("line", values, *pair, **options)
                series.width = 0
            else:
                starts, ends = (
                    ((lows, places), (highs, places)) if lies else ((places, lows), (places, highs))
                )
                series = self.new(
                    "segments", values, *starts, x_end=ends[0], y_end=ends[1], **options
                )
                series.width = series.width or 1.2
            found.append(series)
        return found


def along_color(along, unit):
    color = unit.get("color")
    return along is not None and color is not None and along.field == color.field


def diameter(area):
    return 2 * math.sqrt(max(area, 0) / math.pi)


def whole_box(numbers):
    box = plots.box_of(numbers)
    every = plots.numbers_of(numbers)
    return box and box | {"min": min(every), "max": max(every), "outliers": []}


def spread(extent, field, rows):
    if extent == "iqr":
        return data.aggregate("q1", field, rows), data.aggregate("q3", field, rows)
    if extent == "ci":
        return data.aggregate("ci0", field, rows), data.aggregate("ci1", field, rows)
    mean = data.aggregate("mean", field, rows)
    if mean is None:
        return None, None
    size = data.aggregate("stdev" if extent == "stdev" else "stderr", field, rows)
    return mean - size, mean + size


MARKS = {
    "line": Mark.lines,
    "trail": Mark.lines,
    "area": Mark.areas,
    "bar": Mark.bars,
    "point": Mark.points,
    "circle": Mark.points,
    "square": Mark.points,
    "tick": Mark.points,
    "text": Mark.texts,
    "rule": Mark.rules,
    "rect": Mark.rects,
    "arc": Mark.arcs,
    "boxplot": Mark.boxes,
    "errorbar": Mark.errors,
    "errorband": Mark.errors,
}
