"""The traces of plotly's figures as series of plots."""

import base64
import math
import re

from . import bins
from . import plots
from .colors import color_of
from .number_formats import written
from .plotly_values import (
    counted,
    dash_of,
    dict_of,
    errors_of,
    group_of,
    item,
    list_of,
    number,
    precomputed,
    scale_colors,
    symbol_of,
    texts_of,
    title_of,
)

COLORWAY = "#636efa #EF553B #00cc96 #ab63fa #FFA15A #19d3f3 #FF6692 #B6E880 #FF97FF #FECB52".split()
STEPS = {"hv": "post", "vh": "pre", "hvh": "mid", "vhv": "mid"}


class Traces:
    """Adds traces to the panels of a plot."""

    def __init__(self, layout, plot):
        self.layout = layout
        self.plot = plot
        self.scales = {}
        way = [color_of(color) for color in list_of(layout.get("colorway"))]
        self.colors = [color for color in way if color] or COLORWAY
        self.slices = {}  # colors of the names in pies

    def add_all(self, traces):
        traces = [self.with_template(trace) for trace in traces]
        known = []
        for at, trace in enumerate(traces):
            kind = str(trace.get("type", "scatter"))
            if trace.get("visible", True) is not True:
                continue
            if kind not in ADDED:
                self.plot.missing.append(kind)
                continue
            marker = dict_of(trace.get("marker"))
            line = dict_of(trace.get("line"))
            default = self.colors[at % len(self.colors)]
            trace["default"] = color_of(
                line.get("color"), default=color_of(marker.get("color"), default=default)
            )
            known.append(trace)
        self.find_scales(known)
        self.traces = known
        bars = [trace for trace in known if trace.get("type") in ("bar", "histogram")]
        for trace in known:
            if trace.get("type") not in ("bar", "histogram"):
                ADDED[trace.get("type", "scatter")](self, trace)
        self.add_bars(bars)
        order = {id(trace): number for number, trace in enumerate(known)}
        for panel in self.plot.panels:
            panel.series.sort(key=lambda series: order.get(series.order, 0))
        self.layout.finish_axes()
        if self.layout.own.get("showlegend") is not True and len(known) == 1:
            if known[0].get("type") != "pie" and known[0].get("showlegend") is not True:
                self.plot.has_legend = False

    def with_template(self, trace):
        given = list_of(self.layout.traces.get(str(trace.get("type", "scatter"))))
        merged = dict(dict_of(given[0])) if given else {}
        for name, value in trace.items():
            if isinstance(value, dict) and isinstance(merged.get(name), dict):
                value = merged[name] | value
            merged[name] = value
        return merged

    def find_scales(self, traces):
        """Chooses the scales of all axes before anything is placed on them."""
        for trace in traces:
            if trace.get("type") == "pie":
                continue
            panel = self.layout.panel(trace)
            lies = trace.get("orientation") == "h"
            for name, axis in (("x", panel.x), ("y", panel.y)):
                values = list_of(trace.get(name))
                if trace.get("type") in ("box", "violin") and not values:
                    continue
                if trace.get("type") == "bar" and (name == "x") == lies:
                    axis.from_zero = True
                if values and isinstance(values[0], list):
                    trace[name] = values = list(zip(*values)) if len(values) == 2 else values
                self.layout.set_scale(axis, values)

    def series(self, panel, trace, kind, x=(), y=(), **options):
        series = plots.Series(kind, x, y, **options)
        series.label = self.label(trace)
        series.in_legend = trace.get("showlegend") is not False
        series.order = id(trace)
        series.color = series.color or trace["default"]
        if series.alpha is None and isinstance(trace.get("opacity"), (int, float)):
            series.alpha = min(max(trace["opacity"], 0), 1)
        panel.series.append(series)
        return series

    def label(self, trace):
        name = trace.get("name")
        if name is None:
            return (
                f"trace {next(n for n, one in enumerate(self.traces) if one is trace)}"
                if len(self.traces) > 1
                else None
            )
        return re.sub(r"<[^>]{0,200}>", "", str(name)) or None

    def color_scale(self, options):
        """The scale of numbers; that of a `coloraxis` is one for all its traces."""
        axis = options.get("coloraxis")
        if axis:
            if axis not in self.scales:
                self.scales[axis] = self.scale_of(self.layout.own.get(axis), "cmin", "cmax", "cmid")
            return self.scales[axis]
        pair = ("zmin", "zmax", "zmid") if "z" in options else ("cmin", "cmax", "cmid")
        return self.scale_of(options, *pair)

    def scale_of(self, options, low, high, middle):
        options = dict_of(options)
        colors = options.get("colorscale")
        if not colors:
            scales = dict_of(self.layout.get("colorscale"))
            colors = scales.get("sequential")
            if options.get(middle) is not None:
                colors = scales.get("diverging", colors)
        pairs = scale_colors(colors)
        if options.get("reversescale"):
            pairs = [(1 - at, color) for at, color in reversed(pairs)]
        low, high = (plots.number_of(options.get(name)) for name in (low, high))
        scale = plots.ColorScale(pairs)
        scale.low = low if math.isfinite(low) else None
        scale.high = high if math.isfinite(high) else None
        if math.isfinite(plots.number_of(options.get(middle))):
            scale.middle = number(options[middle], 0)
        bar = dict_of(options.get("colorbar"))
        title = bar.get("title")
        scale.title = dict_of(title).get("text") if isinstance(title, dict) else title
        scale.is_shown = options.get("showscale") is not False
        return scale

    # Each kind

    def add_scatter(self, trace):
        panel = self.layout.panel(trace)
        y = list_of(trace.get("y"))
        x = list_of(trace.get("x"))
        if not x and not y:
            return
        x = x or counted(trace, "x", len(y))
        y = y or counted(trace, "y", len(x))
        count = min(len(x), len(y))
        x, y = x[:count], y[:count]
        mode = trace.get("mode")
        group = trace.get("stackgroup")
        if not isinstance(mode, str):
            mode = "lines" if count >= 20 or group else "lines+markers"
        line, marker = dict_of(trace.get("line")), dict_of(trace.get("marker"))
        color = (
            color_of(line.get("color"), default=color_of(marker.get("color"))) or trace["default"]
        )
        errors = errors_of(trace.get("error_y"), y)
        base = self.fill_of(panel, trace, x, y, color)
        own = None
        if group:
            own = y
            y = self.stacked(panel, trace, x, y, color)
        if "lines" in mode and line.get("width") != 0:
            series = self.series(panel, trace, "line", x, y, color=color, own=own)
            series.width = number(line.get("width"), 2)
            series.dash = dash_of(line.get("dash"))
            series.step = STEPS.get(line.get("shape"))
            series.errors, errors = errors, None
            if "markers" in mode and not isinstance(marker.get("color"), list):
                series.has_markers = True
                series.symbol = symbol_of(marker.get("symbol"))
                mode = mode.replace("markers", "")
            base = None
        elif base is not None:
            base.in_legend = trace.get("showlegend") is not False
            base.is_told = True
            base.label = self.label(trace)
        series = None
        if "markers" in mode:
            series = self.series(panel, trace, "scatter", x, y, errors=errors)
            self.set_marker(series, marker, count)
        texts = [
            text and re.sub(r"<[^>]{0,200}>", " ", str(text)) for text in texts_of(trace, x, y)
        ]
        if "text" in mode and any(texts):
            series = series or self.series(panel, trace, "text", x, y, in_legend=False)
            series.in_legend = series.kind != "text"
            series.texts = texts
            at = str(trace.get("textposition", "middle center"))
            series.offset = (0, 0)
            series.text_options = {"fontsize": 8}
            for word, offset, options in (
                ("top", (0, 5), {"va": "bottom"}),
                ("bottom", (0, -5), {"va": "top"}),
                ("left", (-5, 0), {"ha": "right"}),
                ("right", (5, 0), {"ha": "left"}),
            ):
                if word in at:
                    series.offset = tuple(map(sum, zip(series.offset, offset)))
                    series.text_options |= options

    def fill_of(self, panel, trace, x, y, color):
        """Adds the area of a line, down to zero, to the line before or inside of itself."""
        fill = trace.get("fill")
        lines = panel.lines
        panel.lines = [*lines, (x, y)]
        if fill in (None, "none") or trace.get("stackgroup"):
            return None
        shade = color_of(trace.get("fillcolor"), default=None) or color
        options = {"color": shade, "alpha": None if trace.get("fillcolor") else 0.4}
        if fill in ("toself", "tonext"):
            return self.area(panel, trace, "polygon", x, y, **options)
        options |= {"has_area": True, "step": STEPS.get(dict_of(trace.get("line")).get("shape"))}
        if fill == "tonexty" and lines:
            before = dict(zip(map(plots.name_of, lines[-1][0]), lines[-1][1]))
            base = [plots.number_of(before.get(plots.name_of(at))) for at in x]
            return self.area(panel, trace, "line", x, y, base=base, width=0, **options)
        if fill == "tozerox":
            return self.area(panel, trace, "line", x, y, lies=True, width=0, **options)
        panel.y.from_zero = True
        return self.area(panel, trace, "line", x, y, width=0, **options)

    def area(self, panel, trace, kind, x, y, **options):
        series = self.series(panel, trace, kind, x, y, **options)
        series.in_legend = series.is_told = False
        return series

    def stacked(self, panel, trace, x, y, color):
        """Puts an area on those of its group before it."""
        stacks = panel.stacks
        stack = stacks.setdefault(trace.get("stackgroup"), {})
        names = [plots.name_of(at) for at in x]
        base = [stack.get(name, 0.0) for name in names]
        tops = [low + number(value, 0) for low, value in zip(base, y)]
        if trace.get("groupnorm") or self.norms(trace):
            wholes = self.wholes(trace)
            part = 100 if self.norms(trace) == "percent" else 1
            base = [low * part / wholes[name] for low, name in zip(base, names)]
            shown = [top * part / wholes[name] for top, name in zip(tops, names)]
        else:
            shown = tops
        stack.update(zip(names, tops))
        shade = color_of(trace.get("fillcolor"), default=color)
        panel.y.from_zero = True
        options = {"has_area": True, "base": base, "width": 0, "color": shade}
        self.area(panel, trace, "line", x, shown, alpha=0.5, **options)
        return shown

    def norms(self, trace):
        some = (one for one in self.traces if one.get("stackgroup") == trace["stackgroup"])
        return next((one["groupnorm"] for one in some if one.get("groupnorm")), None)

    def wholes(self, trace):
        wholes = {}
        for one in self.traces:
            if one.get("stackgroup") == trace["stackgroup"]:
                for at, value in zip(list_of(one.get("x")), list_of(one.get("y"))):
                    name = plots.name_of(at)
                    wholes[name] = wholes.get(name, 0) + number(value, 0)
        return {name: whole or 1 for name, whole in wholes.items()}

    def set_marker(self, series, marker, count):
        colors = marker.get("color")
        opacity = marker.get("opacity")
        if isinstance(opacity, (int, float)):
            series.alpha = min(max(opacity, 0), 1)
        if isinstance(colors, list):
            if any(isinstance(one, str) for one in colors):
                series.colors = [color_of(one, default=series.color) for one in colors]
            else:
                series.values = colors
                series.scale = self.color_scale(marker)
                if not (marker.get("showscale") or marker.get("coloraxis")):
                    series.scale.is_shown = False
            for name in ("colors", "values"):
                if getattr(series, name) is not None and len(getattr(series, name)) != count:
                    setattr(series, name, None)
        elif color_of(colors):
            series.color = color_of(colors)
        if series.kind != "scatter":
            return
        symbol = marker.get("symbol")
        series.symbol = symbol_of(symbol)
        series.is_hollow = isinstance(symbol, str) and symbol.endswith("-open")
        size = marker.get("size")
        if isinstance(size, list) and len(size) == count:
            by = number(marker.get("sizeref"), 1) or 1
            sizes = [max(number(one, 0), 0) for one in size]
            if marker.get("sizemode") == "area":
                sizes = [2 * math.sqrt(one / by / 2) for one in sizes]
            else:
                sizes = [one / by for one in sizes]
            series.sizes = [max(one, number(marker.get("sizemin"), 0)) for one in sizes]
            series.alpha = 0.7 if series.alpha is None else series.alpha
        else:
            series.sizes = number(size, 6)

    def add_pie(self, trace):
        values = list_of(trace.get("values"))
        names = list_of(trace.get("labels")) or list(range(len(values)))
        parts = {}
        for at, name in enumerate(names):
            value = number(values[at], 0) if at < len(values) else 0 if values else 1
            name = plots.name_of(name)
            parts[name] = parts.get(name, 0) + max(value, 0)
        order = (
            sorted(parts, key=lambda name: -parts[name]) if trace.get("sort", True) else list(parts)
        )
        given = list_of(dict_of(trace.get("marker")).get("colors"))
        colors = dict(zip(map(plots.name_of, names), (color_of(color) for color in given)))
        way = [color_of(one) for one in list_of(self.layout.get("piecolorway"))] or self.colors
        for name in order:
            self.slices.setdefault(name, way[len(self.slices) % len(way)])
        panel = self.layout.free_panel(trace.get("domain"))
        series = self.series(panel, trace, "pie", order, [parts[name] for name in order])
        series.colors = [colors.get(name) or self.slices[name] for name in order]
        series.hole = number(trace.get("hole"), 0)
        info = trace.get("textinfo", "percent")
        info = "" if info == "none" else str(info)

        def write(name, part, whole):
            texts = {
                "label": name,
                "value": f"{part:,.10g}",
                "percent": f"{100 * part / whole:.3g}%",
            }
            return "\n".join(text for word, text in texts.items() if word in info)

        series.write = write
        panel.title = title_of(trace)

    def add_box(self, trace):
        """A box or a violin for each name along its axis."""
        kind = trace["type"]
        panel = self.layout.panel(trace)
        x, y = list_of(trace.get("x")), list_of(trace.get("y"))
        lies = trace.get("orientation") == "h" or "orientation" not in trace and bool(x and not y)
        lies = lies or bool(x and not y)
        numbers, names = (x, y) if lies else (y, x)
        along, across = (panel.y, panel.x) if lies else (panel.x, panel.y)
        given = precomputed(trace, names)
        if given is None and not numbers:
            return
        if not names:
            along.scale, along.is_given = "categorical", True
        label = self.label(trace) or "trace 0"
        at = trace.get("y0" if lies else "x0")
        if given is None:
            groups = {}
            names = names or [label if at in (None, " ") else at] * len(numbers)
            for name, value in zip(names, numbers):
                groups.setdefault(name if not isinstance(name, list) else tuple(name), []).append(
                    value
                )
            places, lists = list(groups), list(groups.values())
        else:
            places, lists = given
        if at == " " and not list_of(trace.get("x" if not lies else "y")):
            places = [" "]
        series = self.series(panel, trace, kind, places, lists, lies=lies, inset=0.5)
        line = dict_of(trace.get("line"))
        marker = dict_of(trace.get("marker"))
        color = color_of(marker.get("color"), default=color_of(line.get("color")))
        series.color = color or trace["default"]
        fill = color_of(trace.get("fillcolor"))
        series.is_hidden = isinstance(fill, str) and len(fill) == 9 and fill.endswith("00")
        if fill and not series.is_hidden:
            series.face = fill
        points = trace.get("boxpoints", trace.get("points", "outliers"))
        series.outside = None if points == "all" else points is not False
        series.has_box = bool(dict_of(trace.get("box")).get("visible"))
        mode = self.layout.own.get(f"{kind}mode", "overlay")
        if mode == "group":
            kinds = [one for one in self.traces if one.get("type") == kind]
            kinds = [one for one in kinds if self.layout.panel(one) is panel]
            groups = list(dict.fromkeys(group_of(one) for one in kinds))
            series.slot = groups.index(group_of(trace)), len(groups)
        if across.scale == "categorical":
            across.scale = "linear"

    def add_heatmap(self, trace):
        panel = self.layout.panel(trace)
        rows = [list_of(row) for row in list_of(trace.get("z"))]
        if not rows or not rows[0]:
            return
        columns = max(map(len, rows))
        rows = [row + [None] * (columns - len(row)) for row in rows]
        x = list_of(trace.get("x")) or counted(trace, "x", columns)
        y = list_of(trace.get("y")) or counted(trace, "y", len(rows))
        series = self.series(panel, trace, "heatmap", x, y, z=rows)
        series.scale = self.color_scale(trace)
        series.in_legend = False
        template = trace.get("texttemplate")
        texts = list_of(trace.get("text"))
        if template:
            series.texts = [
                [
                    written(template, {"z": cell, "text": item(item(texts, i), j)})
                    for j, cell in enumerate(row)
                ]
                for i, row in enumerate(rows)
            ]

    def add_image(self, trace):
        rows, source = list_of(trace.get("z")), str(trace.get("source") or "")
        if source.startswith("data:image/"):
            rows = base64.b64decode(source.partition(",")[2])
        elif rows:
            rows = [[list_of(cell)[:3] for cell in row] for row in rows]
        else:
            self.plot.missing.append("image")
            return
        panel = self.layout.panel(trace)
        self.series(panel, trace, "image", z=rows, in_legend=False)
        panel.y.is_reversed, panel.is_equal = True, True

    def add_histogram2d(self, trace):
        panel = self.layout.panel(trace)
        x, y = list_of(trace.get("x")), list_of(trace.get("y"))
        found = bins.grid(panel, x, y, list_of(trace.get("z")), trace)
        if found is None:
            return
        series = self.series(panel, trace, "heatmap", *found[:2], z=found[2], in_legend=False)
        trace.setdefault("z", found[2])
        series.scale = self.color_scale(trace)

    def add_bars(self, traces):
        """Bars and histograms, which are placed beside or on each other."""
        groups = {}
        for trace in traces:
            panel = self.layout.panel(trace)
            groups.setdefault(id(panel), (panel, []))[1].append(trace)
        for panel, some in groups.values():
            bins.prepare(panel, some)
            self.add_group(panel, some)

    def add_group(self, panel, traces):
        mode = self.layout.own.get("barmode", "group")
        norm = self.layout.own.get("barnorm")
        tops, wholes = {}, {}
        groups = list(dict.fromkeys(group_of(trace) for trace in traces))
        if norm:
            for trace in traces:
                for at, value in zip(*trace["bars"][:2]):
                    name = plots.name_of(at)
                    wholes[name] = wholes.get(name, 0) + abs(number(value, 0))
        for trace in traces:
            at, values, widths = trace["bars"]
            lies = trace.get("orientation") == "h"
            across = panel.x if lies else panel.y
            if norm:
                part = 100 if norm == "percent" else 1
                values = [
                    number(value, 0) * part / (wholes[plots.name_of(one)] or 1)
                    for one, value in zip(at, values)
                ]
            base = None
            given = trace.get("base")
            if given is not None:
                given = given if isinstance(given, list) else [given] * len(at)
                base = across.places(given)
                if across.scale == "datetime":
                    # The lengths of a chart of spans are in milliseconds.
                    values = [number(value, 0) / 86_400_000 for value in values]
                    values = [
                        plots.date_at(low + value).isoformat() for low, value in zip(base, values)
                    ]
            elif mode in ("stack", "relative", "group"):
                base = []
                for one, value in zip(at, values):
                    value = number(value, 0)
                    key = plots.name_of(one), group_of(trace) if mode == "group" else 0, value < 0
                    base.append(tops.get(key, 0.0))
                    tops[key] = base[-1] + value
            base = base if base and any(base) else None
            self.add_bar(panel, trace, at, values, base, widths, mode, groups)

    def add_bar(self, panel, trace, at, values, base, widths, mode, groups):
        lies = trace.get("orientation") == "h"
        series = self.series(panel, trace, "bar", at, values, base=base, widths=widths, lies=lies)
        marker = dict_of(trace.get("marker"))
        if mode == "overlay" and series.alpha is None and trace.get("type") == "histogram":
            series.alpha = 0.6 if len(groups) > 1 else None
        series.color = color_of(marker.get("color"), default=trace["default"])
        self.set_marker(series, marker, len(at))
        line = dict_of(marker.get("line"))
        if number(line.get("width"), 0) > 0.5 and isinstance(line.get("color"), str):
            series.edge = color_of(line.get("color"))
        if mode == "group" and len(groups) > 1:
            series.slot = groups.index(group_of(trace)), len(groups)
        series.errors = errors_of(trace.get("error_x" if lies else "error_y"), values)
        if any(texts := texts_of(trace, *((values, at) if lies else (at, values)))):
            series.texts = texts
            where = trace.get("textposition", "auto")
            on_top = base is None or where == "outside"
            series.text_outside = where == "outside" or where == "auto" and on_top
            if where == "none":
                series.texts = None
        along = panel.y if lies else panel.x
        totals = along.totals
        for one, value in zip(at, values):
            name = plots.name_of(one)
            totals[name] = totals.get(name, 0) + number(value, 0)


ADDED = {
    "scatter": Traces.add_scatter,
    "scattergl": Traces.add_scatter,
    "bar": Traces.add_bars,
    "histogram": Traces.add_bars,
    "pie": Traces.add_pie,
    "box": Traces.add_box,
    "violin": Traces.add_box,
    "heatmap": Traces.add_heatmap,
    "image": Traces.add_image,
    "histogram2d": Traces.add_histogram2d,
}
