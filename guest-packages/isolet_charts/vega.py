"""Charts of Vega-Lite, such as altair's, as plots: what they say, and pictures of them."""

import math

from . import drawing
from . import plots
from . import vega_channels as channels
from . import vega_data as data
from . import vega_marks as marks
from .colors import color_of
from .number_formats import formatted
from .vega_data import NotDrawn

STEP = 20  # pixels of a name on an axis
SIZE = 300  # of an axis with a scale
MOST_PANELS = 64
SCHEMES = {
    "tableau10": "#4c78a8 #f58518 #e45756 #72b7b2 #54a24b #eeca3b #b279a2 #ff9da6 #9d755d #bab0ac",
    "category10": "#1f77b4 #ff7f0e #2ca02c #d62728 #9467bd #8c564b #e377c2 #7f7f7f #bcbd22 #17becf",
    "set1": "#e41a1c #377eb8 #4daf4a #984ea3 #ff7f00 #ffff33 #a65628 #f781bf #999999",
    "set2": "#66c2a5 #fc8d62 #8da0cb #e78ac3 #a6d854 #ffd92f #e5c494 #b3b3b3",
    "dark2": "#1b9e77 #d95f02 #7570b3 #e7298a #66a61e #e6ab02 #a6761d #666666",
    "accent": "#7fc97f #beaed4 #fdc086 #ffff99 #386cb0 #f0027f #bf5b17 #666666",
    "tableau20": "#4c78a8 #9ecae9 #f58518 #ffbf79 #54a24b #88d27a #b79a20 #f2cf5b #439894 #83bcb6 "
    "#e45756 #ff9d98 #79706e #bab0ac #d67195 #fcbfd2 #b279a2 #d6a5c9 #9e765f #d8b5a5",
}
MAPS = {"blues": "Blues", "yellowgreenblue": "YlGnBu", "yelloworangered": "YlOrRd"}
MAPS |= {"greens": "Greens", "reds": "Reds", "oranges": "Oranges", "purples": "Purples"}
MAPS |= {"greys": "Greys", "redblue": "RdBu", "redyellowblue": "RdYlBu", "blueorange": "PuOr_r"}
MAPS |= {
    "redyellowgreen": "RdYlGn",
    "spectral": "Spectral",
    "purplegreen": "PRGn",
    "goldred": "YlOrRd",
}
MAPS |= {"bluegreen": "BuGn", "bluepurple": "BuPu", "greenblue": "GnBu", "orangered": "OrRd"}
MAPS |= {"purplebluegreen": "PuBuGn", "purpleblue": "PuBu", "lightgreyred": "Reds"}
MAPS |= {name: name for name in ("viridis", "magma", "inferno", "plasma", "cividis", "turbo")}
# Some of the schemes, for names in order.
RAMPS = {
    "blues": "b5d4e9 93c4e0 6daed5 3181bd 08478c",
    "greens": "bfe6b9 94d391 5fb96b 2b944d 006c2c",
    "reds": "fcbba1 fc9272 fb6a4a dd2a25 a10e15",
    "oranges": "fdc692 fda159 f57f2c de5606 a33c03",
    "purples": "d0d1e6 b3b3d7 918fc2 7059ab 501f8c",
    "greys": "d0d0d0 b0b0b0 8a8a8a 5f5f5f 2b2b2b",
    "viridis": "440154 3b528b 21908d 5dc963 fde725",
    "magma": "000004 51127c b63679 fb8861 fcfdbf",
    "inferno": "000004 57106e bb3754 f98c0a fcffa4",
    "plasma": "0d0887 7e03a8 cb4679 f89540 f0f921",
    "turbo": "30123b 28bceb a4fc3c fb7e21 7a0403",
}


def describe(spec):
    """The chart data of a chart, which is given as `chart.to_dict()`."""
    plot = plot_of(spec)
    return plots.describe(plot) if plot else None


def draw(spec):
    """A picture of a chart as PNG, or None if it has nothing that is drawn here."""
    plot = plot_of(spec)
    return drawing.draw(plot) if plot else None


def plot_of(spec):
    builder = Builder(spec)
    plot = builder.plot
    try:
        plot.tree = builder.tree(spec, None, {})
    except NotDrawn:
        return None
    if not any(panel.series for panel in plot.panels):
        return None
    return plot


class Colors:
    """The colors of fields, which all panels share."""

    def __init__(self, plot):
        self.plot = plot
        self.known = {}
        self.scales = {}

    def names(self, channel, rows):
        """The names that a field has colors for, in the legend's order."""
        if channel.key not in self.known:
            domain = channels.scale_of(channel).get("domain")
            values = {}
            for row in rows:
                if row.get(channel.key) is not None:
                    values.setdefault(data.hashable(row[channel.key]), row.get(channel.end))
            order = channel.options.get("sort", "ascending")
            names = list(values)
            if isinstance(order, list):
                names.sort(key=lambda name: order.index(name) if name in order else len(order))
            elif order is not None:
                place = (lambda name: values[name]) if channel.end else (lambda name: name)
                names.sort(
                    key=lambda name: data.order_key(place(name)), reverse=channels.is_down(order)
                )
            if isinstance(domain, list):
                names = domain + [name for name in names if name not in domain]
            self.known[channel.key] = names
            if self.plot.legend_title is None and channel.options.get("legend", True) is not None:
                self.plot.legend_title = channel.title()
        return self.known[channel.key]

    def of(self, channel, name, rows):
        """The color of a name."""
        names = self.names(channel, rows)
        at, count = channels.index_of(names, name), max(len(names), 1)
        scale = channels.scale_of(channel)
        scheme = scale.get("scheme")
        scheme = scheme.get("name") if isinstance(scheme, dict) else scheme
        given = scale.get("range")
        if isinstance(given, list):
            given = [color_of(color) for color in given]
            given = [color for color in given if color]
        elif scheme in SCHEMES:
            given = SCHEMES[scheme].split()
        elif scheme in MAPS or channel.type == "ordinal":
            map_of = scheme if scheme in MAPS else "blues"
            return ramp(map_of, at / max(count - 1, 1))
        if not given:
            given = SCHEMES["tableau10" if count <= 10 else "tableau20"].split()
        return given[at % len(given)]

    def number(self, channel, row):
        """The number that a continuous color stands for."""
        value = channel.of(row)
        return plots.days_of(value) if channel.type == "temporal" else value

    def scale(self, channel, kind):
        """The scale of a continuous color."""
        key = channel.field, str(channel.aggregate)
        if key in self.scales:
            return self.scales[key]
        options = channels.scale_of(channel)
        scheme = options.get("scheme")
        scheme = scheme.get("name") if isinstance(scheme, dict) else scheme
        is_turned = options.get("reverse") or channel.options.get("sort") == "descending"
        given = [color_of(color) for color in options.get("range") or [] if color_of(color)]
        domain = options.get("domain")
        if len(given) > 1:
            colors = [(at / (len(given) - 1), color) for at, color in enumerate(given)]
            colors = [(1 - at, color) for at, color in reversed(colors)] if is_turned else colors
        else:
            default = "YlGnBu" if kind == "rect" else "Blues"
            if options.get("domainMid") is not None:
                default = "PuOr_r"
            colors = MAPS.get(scheme, default if scheme is None else "viridis")
            if is_turned:
                colors = colors.removesuffix("_r") if colors.endswith("_r") else f"{colors}_r"
        scale = plots.ColorScale(colors, title=channel.title())
        numbers = plots.numbers_of(domain) if isinstance(domain, list) else []
        if len(numbers) > 1:
            scale.low, scale.high = numbers[0], numbers[-1]
        scale.middle = options.get("domainMid")
        scale.is_shown = channel.options.get("legend", True) is not None
        self.scales[key] = scale
        return scale


def ramp(name, part):
    """A color between the ends of a scheme."""
    ends = [int(color, 16) for color in RAMPS.get(name, RAMPS["viridis"]).split()]
    at = min(int(part * (len(ends) - 1)), len(ends) - 2)
    rest = part * (len(ends) - 1) - at
    pairs = [(ends[at] >> bits & 255, ends[at + 1] >> bits & 255) for bits in (16, 8, 0)]
    return "#" + "".join(f"{round(low + (high - low) * rest):02x}" for low, high in pairs)


class Builder:
    """Makes panels of a specification."""

    def __init__(self, spec):
        self.plot = plots.Plot(600, 400)
        self.plot.style = {"grid": "#dddddd", "frame": True, "ticks": True}
        self.datasets = spec.get("datasets") or {}
        self.colors = Colors(self.plot)
        self.config = spec.get("config") or {}
        self.plot.title = channels.text_of(spec.get("title"))
        back = color_of(spec.get("background") or self.config.get("background"))
        if back and back != "none":
            self.plot.style["back"] = back

    def tree(self, spec, rows, encoding):
        """The tree of panels of a part of the specification."""
        rows = data.rows_of(spec.get("data"), self.datasets, rows)
        if spec.get("transform"):
            rows = data.transformed(rows or [], spec["transform"])
        encoding = encoding | (spec.get("encoding") or {})
        for name, way in (("hconcat", "row"), ("vconcat", "column"), ("concat", "row")):
            if name in spec:
                trees = [self.tree(part, rows, encoding) for part in spec[name][:MOST_PANELS]]
                self.add_titles(spec[name], trees)
                if name == "concat" and spec.get("columns"):
                    return wrapped(trees, spec["columns"])
                return way, trees
        if "repeat" in spec:
            return self.repeated(spec, rows, encoding)
        if "facet" in spec:
            facet = spec["facet"]
            names = ("row", "column") if "field" not in facet else ("facet",)
            fields = {name: facet if name == "facet" else facet.get(name) for name in names}
            inner = spec["spec"]
            rows = data.rows_of(inner.get("data"), self.datasets, rows)
            units = self.units(inner, rows, encoding)
            return self.faceted(spec | inner, units, fields, spec.get("columns"))
        units = self.units(spec | {"data": None, "transform": None}, rows, encoding)
        fields = {name: encoding[name] for name in ("row", "column", "facet") if name in encoding}
        if fields:
            columns = fields.get("facet", {}).get("columns", spec.get("columns"))
            return self.faceted(spec, units, fields, columns)
        return self.panels(spec, units, [unit.rows for unit in units])

    def add_titles(self, specs, trees):
        """Gives the parts of a chart their own titles."""
        for spec, tree in zip(specs, trees):
            title = channels.text_of(spec.get("title"))
            if title and isinstance(tree, list) and tree:
                tree[0].title = title

    def repeated(self, spec, rows, encoding):
        fields = spec["repeat"]
        if isinstance(fields, list):
            parts = [replaced(spec["spec"], {"repeat": field}) for field in fields]
            trees = [self.tree(part, rows, encoding) for part in parts[:MOST_PANELS]]
            return wrapped(trees, spec.get("columns") or len(trees))
        if "layer" in fields:
            parts = [replaced(spec["spec"], {"layer": field}) for field in fields["layer"]]
            return self.tree({"layer": parts}, rows, encoding)
        grid = []
        for row in fields.get("row", [None]):
            named = [{"row": row, "column": column} for column in fields.get("column", [None])]
            parts = [replaced(spec["spec"], one) for one in named]
            grid.append(("row", [self.tree(part, rows, encoding) for part in parts]))
        return "column", grid

    def units(self, spec, rows, encoding):
        """The marks of a panel, those of layers in order."""
        rows = data.rows_of(spec.get("data"), self.datasets, rows)
        if spec.get("transform"):
            rows = data.transformed(rows or [], spec["transform"])
        encoding = encoding | (spec.get("encoding") or {})
        if "layer" in spec:
            found = []
            for layer in spec["layer"]:
                try:
                    found += self.units(layer, rows, encoding)
                except NotDrawn as error:
                    self.plot.missing.append(str(error))
            if not found:
                raise NotDrawn("layers")
            return found
        if "mark" not in spec:
            raise NotDrawn("a chart without a mark")
        own = {
            name: value
            for name, value in encoding.items()
            if name not in ("row", "column", "facet")
        }
        return [marks.Mark(spec["mark"], own, rows, self.colors, self.config)]

    def panels(self, spec, units, rows_of_units):
        """The panels of a chart: one, and those over it with axes of their own."""
        resolved = ((spec.get("resolve") or {}).get("scale")) or {}
        apart = resolved.get("y") == "independent" and len(units) > 1
        groups = [[unit] for unit in units] if apart else [units]
        rows = dict(zip(map(id, units), rows_of_units))
        found = []
        for group in groups:
            panel = plots.Panel()
            for name in "xy":
                self.set_axis(panel, name, group)
            if found:
                panel.is_over, panel.x = True, found[0].x
            for unit in group:
                try:
                    panel.series += unit.series(rows[id(unit)])
                except NotDrawn as error:
                    self.plot.missing.append(str(error))
            self.write_parts(panel, group)
            panel.size = self.size(spec, panel, group) if not found else found[0].size
            found.append(panel)
            self.plot.panels.append(panel)
        return found

    def write_parts(self, panel, units):
        """Takes the texts over a pie as those of its parts."""
        pies = [series for series in panel.series if series.kind == "pie"]
        for unit in units:
            text = unit.get("text")
            if pies and unit.kind == "text" and text and not text.is_constant:
                form = text.options.get("format", "")
                is_name = text.is_discrete()

                def write(name, part, whole, is_name=is_name, form=form):
                    return name if is_name else formatted(part, form)

                pies[0].write = write

    def set_axis(self, panel, name, units):
        """Describes an axis as the first mark that has it does."""
        axis = panel.x if name == "x" else panel.y
        some = [unit for unit in units if name in unit.channels]
        if not some:
            axis.is_shown = axis.has_grid = False
            axis.scale = "categorical"
            axis.categories.append("")
            axis.is_reversed = False
            return
        best = [unit for unit in some if not unit.get(name).is_constant] or some
        unit, channel = best[0], best[0].get(name)
        scale = channels.scale_of(channel)
        if channel.is_constant and "datum" not in channel.options:
            raise NotDrawn("places in pixels")
        if channel.is_discrete():
            axis.scale = "categorical"
            for one in best:
                names = one.categories(name)
                axis.categories += [one for one in names if one not in axis.categories]
            axis.is_reversed = name == "y"
            axis.has_grid = False
        elif channel.type == "temporal":
            axis.scale = "datetime"
        elif scale.get("type") in ("log", "symlog"):
            axis.scale = scale["type"]
        axis.is_reversed ^= bool(scale.get("reverse")) or (
            channel.options.get("sort") == "descending" and axis.scale != "categorical"
        )
        domain = scale.get("domain")
        if isinstance(domain, list) and len(domain) == 2 and axis.scale != "categorical":
            ends = [
                axis.place(channels.date_text(end) if isinstance(end, dict) else end)
                for end in domain
            ]
            if all(map(math.isfinite, ends)):
                axis.range = tuple(ends)
        along_lines = unit.kind in ("line", "area", "trail") and name == (
            "y" if unit.lies_across() else "x"
        )
        is_ranged = unit.kind == "bar" and name == "x" and not unit.lies()
        zero = scale.get("zero", not (along_lines or channel.bin or axis.range or is_ranged))
        axis.from_zero = bool(zero) and channel.type == "quantitative"
        self.set_look(axis, channel, best)

    def set_look(self, axis, channel, units):
        titles = dict.fromkeys(unit.get(channel.name).title() for unit in units)
        said = channel.options.get("axis", {})
        axis.title = ", ".join([title for title in titles if title][:2]) or None
        if "title" in channel.options:
            axis.title = channel.title()
        if said is None:
            axis.is_shown = axis.has_grid = False
            return
        if not isinstance(said, dict):
            return
        form = str(said.get("format") or "")
        axis.unit = "%" if form.endswith("%") else "$" if "$" in form else None
        stack = channel.options.get("stack")
        if stack == "normalize" and not form:
            axis.unit = "%"
        if "grid" in said:
            axis.has_grid = bool(said["grid"])
        if said.get("labels") is False:
            axis.has_labels = False
        values = said.get("values")
        if isinstance(values, list) and axis.scale != "categorical":
            values = [channels.date_text(one) if isinstance(one, dict) else one for one in values]
            axis.ticks = [(one, formatted(one, form)) for one in values]

    def size(self, spec, panel, units):
        """The size of a panel in pixels."""
        found = []
        view = self.config.get("view") or {}
        for name, axis, side in (("x", panel.x, "width"), ("y", panel.y, "height")):
            said = spec.get(side)
            default = view.get(f"continuous{side.capitalize()}", SIZE)
            if axis.scale == "categorical" and not any(one.kind == "pie" for one in panel.series):
                step = said.get("step", STEP) if isinstance(said, dict) else STEP
                slots = max((series.slot[1] for series in panel.series), default=1)
                count = max(len(axis.categories), 1) * (
                    slots if (name == "y") == units[0].lies() else 1
                )
                default = min(max(count * channels.number(step, STEP), 40), 1600)
            found.append(min(max(channels.number(said, default), 20), 1600))
        return found

    def faceted(self, spec, units, fields, columns):
        """Panels for each value of one field, or of two."""
        fields = {name: channels.Channel(name, field) for name, field in fields.items() if field}
        if any(channel.bin or channel.unit for channel in fields.values()):
            for channel in fields.values():
                probe = marks.Mark(
                    "point", {channel.name: channel.options}, units[0].rows, self.colors, {}
                )
                channel.key = probe.channels[channel.name].key
                for unit in units:
                    other = marks.Mark(
                        "point", {channel.name: channel.options}, unit.rows, self.colors, {}
                    )
                    unit.rows = other.rows
        values = {}
        for name, channel in fields.items():
            some = marks.Mark("point", {name: channel.options}, units[0].rows, self.colors, {})
            values[name] = some.categories(name) or [None]
        if "facet" in values:
            wide = columns or (len(values["facet"]) if len(values["facet"]) <= 4 else 3)
            grid = [{"facet": name} for name in values["facet"]]
            grid = [grid[at : at + wide] for at in range(0, len(grid), wide)]
        else:
            rows, across = values.get("row", [None]), values.get("column", [None])
            grid = [[{"row": row, "column": column} for column in across] for row in rows]
        return self.grid(spec, units, fields, grid)

    def grid(self, spec, units, fields, grid):
        rows, first = [], None
        for number, line in enumerate(grid):
            trees = []
            for place, wanted in enumerate(line):
                if len(self.plot.panels) >= MOST_PANELS:
                    break
                parts = [part_of(unit.rows, fields, wanted) for unit in units]
                panels = self.panels(spec, units, parts)
                names = [name for name in wanted.values() if name is not None]
                panels[0].title = ", ".join(names)
                first = first or panels
                for panel, other in zip(panels, first):
                    panel.x.group, panel.y.group = other.x.group, other.y.group
                is_lowest = number + 1 == len(grid) or place >= len(grid[number + 1])
                for panel in panels:
                    panel.x.is_shown = panel.x.is_shown and is_lowest
                    panel.y.is_shown = panel.y.is_shown and (place == 0 or panel.is_over)
                trees.append(panels)
            if trees:
                rows.append(("row", trees))
        return "column", rows


def part_of(rows, fields, wanted):
    """The rows that a panel shows."""
    for name, channel in fields.items():
        value = wanted.get(name)
        if value is not None and any(channel.key in row for row in rows[:1]):
            rows = [row for row in rows if plots.name_of(row.get(channel.key)) == value]
    return rows


def wrapped(trees, columns):
    columns = max(int(columns), 1)
    lines = [trees[at : at + columns] for at in range(0, len(trees), columns)]
    return "column", [("row", line) for line in lines]


def replaced(part, fields):
    """A part of a specification with fields in the place of repeated ones."""
    if isinstance(part, dict):
        if "repeat" in part and len(part) == 1 and part["repeat"] in fields:
            return fields[part["repeat"]]
        return {name: replaced(one, fields) for name, one in part.items()}
    if isinstance(part, list):
        return [replaced(one, fields) for one in part]
    return part
