"""A mark of a chart of Vega-Lite: its rows, and what its channels make of them."""

import math

from . import plots
from . import vega_data as data
from .colors import color_of
from .vega_channels import (
    DISCRETE,
    Channel,
    chosen,
    index_of,
    is_down,
    middle_of,
    number,
    scale_of,
)

BLUE = "#4c78a8"
DASHES = ("-", (0, (4, 2)), (0, (1, 2)), (0, (6, 2, 1, 2)), (0, (8, 3)))
SPLITTING = ("color", "detail", "shape", "strokeDash", "opacity", "xOffset", "yOffset", "size")


class Unit:
    """A mark with its encoding and its rows."""

    def __init__(self, mark, encoding, rows, colors, config):
        self.mark = mark if isinstance(mark, dict) else {"type": mark}
        self.kind = self.mark.get("type")
        config = config.get(self.kind) if isinstance(config.get(self.kind), dict) else {}
        self.mark = config | self.mark
        self.colors = colors
        self.rows = rows if rows is not None else [{}]
        self.channels = {}
        for name, options in encoding.items():
            options = options if isinstance(options, dict) else {}
            options = self.by_test(name, chosen(options))
            self.channels[name] = Channel(name, options)
        for other in ("fill", "stroke"):
            if other in self.channels and "color" not in self.channels:
                self.channels["color"] = self.channels[other]
        self.prepare()

    def by_test(self, name, options):
        """An encoding of one of two values, by a comparison, as a field with both of them."""
        condition = options.get("condition")
        if not isinstance(condition, dict) or "test" not in condition:
            return options
        pair = condition.get("value"), options.get("value")
        try:
            test = data.passes(condition["test"])
        except data.NotDrawn:
            test = None
        if name not in ("color", "fill", "stroke") or test is None or None in pair:
            if name in ("color", "fill", "stroke"):
                self.colors.plot.missing.append("colors by an expression")
                return {"value": None}
            return options
        field = f"{name} by test"
        self.rows = [row | {field: pair[0] if test(row) else pair[1]} for row in self.rows]
        scale = {"domain": list(pair), "range": list(pair)}
        return {"field": field, "type": "nominal", "legend": None, "scale": scale}

    def get(self, name):
        return self.channels.get(name)

    def prepare(self):
        """Adds to the rows the bins and units of dates that channels ask for."""
        for channel in self.channels.values():
            if channel.field is None or channel.aggregate:
                continue
            if channel.bin and channel.bin != "binned":
                edges = data.edges_of(self.rows, channel.field, channel.bin)
                found = [data.bin_of(edges, row.get(channel.field)) for row in self.rows]
                if channel.type in DISCRETE:
                    found = [(f"{a:g} – {b:g}" if a is not None else None, a) for a, b in found]
            elif channel.unit:
                found = [data.unit_of(channel.unit, row.get(channel.field)) for row in self.rows]
                channel.is_part = any(isinstance(end, int) for _, end in found)
            else:
                continue
            channel.key, channel.end = f"{channel.name} of", f"{channel.name} to"
            pair = (channel.key, channel.end)
            self.rows = [row | dict(zip(pair, both)) for row, both in zip(self.rows, found)]
        if self.get("x") and self.get("x").bin == "binned" and self.get("x2"):
            self.get("x").end = self.get("x2").field

    def aggregated(self, rows):
        """The rows with what is aggregated, one of each group."""
        counted = [channel for channel in self.channels.values() if channel.aggregate]
        if not counted:
            return rows
        names = []
        for channel in self.channels.values():
            if not channel.aggregate and channel.field and channel.name != "tooltip":
                names += [channel.key, channel.end] if channel.end else [channel.key]
        found = []
        for key, group in data.grouped(rows, dict.fromkeys(names)):
            row = dict(zip(dict.fromkeys(names), key))
            for channel in counted:
                channel.key = f"{channel.name} of"
                row[channel.key] = data.aggregate(channel.aggregate, channel.field, group)
            found.append(row)
        return found

    def categories(self, name):
        """The names on a discrete axis, in order."""
        channel = self.get(name)
        if channel is None or channel.is_constant:
            return []
        values = {}
        for row in self.rows:
            value = row.get(channel.key)
            if value is not None:
                values.setdefault(data.hashable(value), row.get(channel.end))
        order = channel.options.get("sort", "ascending")
        domain = scale_of(channel).get("domain")
        if isinstance(domain, list):
            return [plots.name_of(value) for value in domain]
        if isinstance(order, list):
            known = [value for value in order if value in values]
            rest = [value for value in values if value not in known]
            return [plots.name_of(value) for value in known + rest]
        found = list(values)
        if order is not None:
            found.sort(key=self.sort_key(channel, order, values), reverse=is_down(order))
        return list(dict.fromkeys(map(plots.name_of, found)))

    def sort_key(self, channel, order, places):
        """What the names of a channel are sorted by."""
        by, field, name = None, None, None
        if isinstance(order, str) and order.lstrip("-") in self.channels:
            other = self.channels[order.lstrip("-")]
            by, field = other.aggregate or "sum", other.field
        elif isinstance(order, dict) and "encoding" in order:
            name = order["encoding"]
            other = self.channels.get(name)
            by, field = (other.aggregate or "sum", other.field) if other else (None, None)
        elif isinstance(order, dict):
            by, field = order.get("op") or "mean", order.get("field")
        if by is None or order == channel.name:
            if channel.end:
                return lambda value: data.order_key(places[value])
            return data.order_key
        groups = data.grouped(self.rows, [channel.key])
        known = {key[0]: data.aggregate(by, field, rows) for key, rows in groups}
        return lambda value: data.order_key(known.get(value))

    def is_measure(self, name):
        """Whether a channel of place is continuous, and not of bins."""
        channel = self.get(name)
        return bool(
            channel
            and channel.type == "quantitative"
            and not channel.bin
            and not channel.is_constant
        )

    def lies(self):
        """Whether bars and areas go along x."""
        x, y = self.get("x"), self.get("y")
        if self.mark.get("orient") in ("horizontal", "vertical") and self.kind != "tick":
            return self.mark["orient"] == "horizontal"
        if self.get("x2") and not self.get("y2") and not (x and x.bin):
            return True
        if not self.is_measure("x"):
            return bool(y is None and x and x.type == "quantitative" and not x.bin)
        if not self.is_measure("y"):
            return True
        return bool(x.aggregate and not y.aggregate)

    def parts(self, rows):
        """Groups of rows with the same color and what else divides them, by the order of colors."""
        names = [name for name in SPLITTING if name in self.channels]
        channels = [self.channels[name] for name in names]
        channels = [one for one in channels if not one.is_constant and one.is_discrete()]
        groups = data.grouped(rows, [channel.key for channel in channels])
        found = []
        for key, some in groups:
            values = dict(zip((channel.name for channel in channels), key))
            found.append((values, some))
        color = self.get("color")
        if color is not None and color in channels:
            order = self.colors.names(color, self.rows)
            found.sort(key=lambda part: index_of(order, part[0].get("color")))
        return found

    def color(self, values=None):
        """The color of a part of the rows."""
        channel = self.get("color")
        fallback = {"text": "#222222", "rule": "#222222", "errorbar": "#222222"}
        default = color_of(self.mark.get("color") or self.mark.get("fill"))
        default = default or color_of(self.mark.get("stroke")) or fallback.get(self.kind, BLUE)
        if channel is None:
            return default
        if channel.is_constant:
            return color_of(channel.value, default=default)
        if values and "color" in values:
            return self.colors.of(channel, values["color"], self.rows)
        return default

    def alpha(self, default=None):
        channel = self.get("opacity")
        said = channel.value if channel and channel.is_constant else self.mark.get("opacity")
        said = self.mark.get("fillOpacity") if said is None else said
        found = number(said, math.nan)
        return min(max(found, 0), 1) if math.isfinite(found) else default

    def places(self, name, rows):
        channel = self.get(name)
        if channel is None:
            return None
        middles = channel.end and not channel.is_discrete()
        found = []
        for row in rows:
            value = channel.of(row)
            if middles and value is not None and self.kind != "line":
                value = middle_of(channel, value, row.get(channel.end))
            found.append(value)
        return found

    def new(self, kind, values, x, y, **options):
        """A series of a part of the rows."""
        series = plots.Series(kind, x, y, **options)
        for name in ("color", "shape", "strokeDash"):
            if series.label is None and values.get(name) is not None:
                series.label = plots.name_of(values[name])
                channel = self.get(name)
                series.in_legend = channel.options.get("legend", True) is not None
        series.color = series.color or self.color(values)
        dash = self.mark.get("strokeDash")
        if isinstance(dash, list) and len(dash) > 1:
            series.dash = (0, tuple(number(one, 1) * 0.75 for one in dash[:6]))
        if values.get("strokeDash") is not None:
            names = self.categories("strokeDash")
            series.dash = DASHES[index_of(names, values["strokeDash"]) % len(DASHES)]
        width = number(self.mark.get("strokeWidth", self.mark.get("size")), 0)
        series.width = min(width, 30) or None
        return series
