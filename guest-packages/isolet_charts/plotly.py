"""Figures of plotly as plots: what they say, and pictures of them."""

import html
import math
import re

from . import drawing
from . import plotly_traces as traces
from . import plots
from .colors import color_of
from .drawing_series import PIXEL
from .plotly_values import dash_of, decoded, dict_of, list_of, number

WIDTH, HEIGHT = 700, 450
TAG = re.compile(r"<[^>]{0,200}>")
SIDES = {"left": "left", "center": "center", "right": "right"}
LEVELS = {"top": "top", "middle": "center", "bottom": "bottom"}


def describe(figure):
    """The chart data of a figure, which is given as `json.loads(figure.to_json())`."""
    plot = plot_of(figure)
    return plots.describe(plot) if plot else None


def draw(figure):
    """A picture of a figure as PNG, or None if it has nothing that is drawn here."""
    plot = plot_of(figure)
    return drawing.draw(plot) if plot else None


def plot_of(figure):
    figure = decoded(figure)
    layout = Layout(dict_of(figure.get("layout")))
    plot = layout.plot()
    some = [trace for trace in list_of(figure.get("data")) if isinstance(trace, dict)]
    traces.Traces(layout, plot).add_all(some)
    if not any(panel.series for panel in plot.panels):
        return None
    add_shapes(layout, plot)
    add_notes(layout, plot)
    return plot


def text_of(text):
    """A text without its marks, or None."""
    if isinstance(text, dict):
        text = text.get("text")
    if text is None or text == "":
        return None
    text = re.sub(r"<br\s*/?>", "\n", str(text))
    return html.unescape(TAG.sub("", text)).strip() or None


class Layout:
    """A figure's layout, with what its template says."""

    def __init__(self, layout):
        self.own = layout
        template = dict_of(layout.get("template"))
        self.template = dict_of(template.get("layout"))
        self.traces = dict_of(template.get("data"))
        self.axes = {}  # by names as "x2"
        self.panels = {}  # by a pair of them

    def get(self, name, default=None):
        return self.own.get(name, self.template.get(name, default))

    def plot(self):
        style = {
            "back": color_of(self.get("paper_bgcolor"), default="white"),
            "face": color_of(self.get("plot_bgcolor"), default="white"),
            "text": color_of(dict_of(self.get("font")).get("color"), default="#2a3f5f"),
            "grid": color_of(dict_of(self.template.get("xaxis")).get("gridcolor"), default="#eee"),
        }
        # A page lies below what is transparent.
        if style["back"] == "none" or style["back"].endswith("00") and len(style["back"]) == 9:
            style["back"] = "white"
        size = [self.own.get("width"), self.own.get("height")]
        size = [one if isinstance(one, (int, float)) else None for one in size]
        plot = plots.Plot(size[0] or WIDTH, size[1] or HEIGHT)
        plot.style = style
        title = self.own.get("title")
        plot.title = text_of(title)
        below = text_of(dict_of(dict_of(title).get("subtitle")))
        if below:
            plot.title = f"{plot.title}\n{below}" if plot.title else below
        legend = dict_of(self.get("legend"))
        plot.legend_title = text_of(legend.get("title"))
        plot.legend = legend_place(legend)
        plot.has_legend = self.own.get("showlegend") is not False
        self.drawn = plot
        return plot

    def panel(self, trace):
        """The panel of a trace's axes."""
        names = str(trace.get("xaxis", "x")), str(trace.get("yaxis", "y"))
        if names not in self.panels:
            x, y = (self.axis(name) for name in names)
            over = self.options(names[1]).get("overlaying")
            left, right = self.domain(names[0])
            bottom, top = self.domain(str(over) if over else names[1])
            panel = plots.Panel(x, y, (left, bottom, right, top))
            panel.is_over = bool(over)
            anchors = [self.options(name).get("scaleanchor") for name in names]
            panel.is_equal = any(name in anchors for name in names)
            self.panels[names] = panel
            # What lies over others is drawn after them.
            self.drawn.panels.append(panel)
            self.drawn.panels.sort(key=lambda panel: panel.is_over)
        return self.panels[names]

    def free_panel(self, domain):
        """A panel without axes, such as that of a pie."""
        domain = dict_of(domain)
        left, right = pair(domain.get("x"), (0, 1))
        bottom, top = pair(domain.get("y"), (0, 1))
        panel = plots.Panel(place=(left, bottom, right, top))
        self.drawn.panels.append(panel)
        return panel

    def options(self, name):
        """What the layout says of an axis, and the template of all."""
        letter = name[:1]
        own = dict_of(self.own.get(f"{letter}axis{name[1:]}"))
        return dict_of(self.template.get(f"{letter}axis")) | own

    def domain(self, name):
        return pair(self.options(name).get("domain"), (0, 1))

    def axis(self, name):
        if name in self.axes:
            return self.axes[name]
        axis = self.axes[name] = plots.Axis()
        options = self.options(name)
        axis.title = text_of(options.get("title"))
        kind = options.get("type")
        kinds = {"date": "datetime", "category": "categorical", "multicategory": "categorical"}
        axis.scale = kinds.get(kind, kind if kind in ("log", "linear") else "linear")
        axis.is_given = kind in (*kinds, "log", "linear")
        axis.is_reversed = str(options.get("autorange")) in ("reversed", "max reversed")
        axis.is_shown = options.get("visible") is not False
        axis.has_grid = options.get("showgrid")
        if options.get("visible") is False:
            axis.has_grid = False
        axis.from_zero = options.get("rangemode") == "tozero"
        if options.get("showticklabels") is False:
            axis.has_labels = False
        form = str(options.get("tickformat") or "")
        axis.unit = "%" if form.endswith("%") else "$" if "$" in form else None
        if options.get("tickprefix") == "$":
            axis.unit = "$"
        matched = options.get("matches")
        if isinstance(matched, str) and matched != name and matched[:1] == name[:1]:
            other = self.axis(matched)
            axis.group = other.group
            axis.categories = other.categories
        return axis

    def set_scale(self, axis, values):
        """Chooses the scale of an axis by the first values on it, unless it is given."""
        if not axis.is_given and len(values):
            scale = scale_of(values)
            if scale != "linear" or any(value is not None for value in values[:1000]):
                axis.is_given = True
                axis.scale = scale

    def finish_axes(self):
        """Takes ranges, ticks and orders, which depend on the scales."""
        for panel in self.drawn.panels:
            panel.fill_categories()
        for name, axis in self.axes.items():
            options = self.options(name)
            order_of(axis, options)
            ends = list_of(options.get("range"))
            if len(ends) == 2:
                ends = [end_of(axis, end) for end in ends]
                if None not in ends and ends[0] > ends[1]:
                    axis.is_reversed, ends = True, ends[::-1]
                axis.range = tuple(ends) if any(end is not None for end in ends) else None
            places, labels = list_of(options.get("tickvals")), list_of(options.get("ticktext"))
            if places and options.get("tickmode", "array") == "array":
                labels = labels or places
                axis.ticks = [(place, text_of(text) or "") for place, text in zip(places, labels)]


def legend_place(legend):
    """Where a legend is that is not beside the panels: x, y, whether it is flat, its corner."""
    is_flat = legend.get("orientation") == "h"
    if not is_flat and not {"x", "y"} & set(legend):
        return None
    x, y = (plots.number_of(legend.get(name, default)) for name, default in (("x", 1.02), ("y", 1)))
    if is_flat and "x" not in legend:
        x = 0.0
    if is_flat and "y" not in legend:
        y = -0.15
    if not (-1 <= x <= 2 and -1 <= y <= 2):
        return None
    sides = {"auto": "left" if x <= 1 / 3 or x >= 1 else "right" if x >= 2 / 3 else "center"}
    levels = {"auto": "lower" if y <= 1 / 3 and y >= 0 or y > 1 else "upper"}
    levels |= {"top": "upper", "middle": "center", "bottom": "lower"}
    side = (sides | SIDES).get(legend.get("xanchor", "auto"), "left")
    level = levels.get(legend.get("yanchor", "auto"), "upper")
    return x, y, is_flat, "center" if level == side == "center" else f"{level} {side}"


def pair(value, default):
    numbers = plots.numbers_of(list_of(value))
    return tuple(min(max(one, 0), 1) for one in numbers) if len(numbers) == 2 else default


def scale_of(values):
    """The scale for these values, as plotly chooses it."""
    if any(isinstance(value, (list, tuple)) for value in values[:10]):
        return "categorical"
    some = [value for value in values if value is not None and value != ""]
    some = some[:: len(some) // 1000 + 1]
    if not some:
        return "linear"
    texts = [value for value in some if isinstance(value, str)]
    dates = sum(plots.date_of(value) is not None for value in texts)
    numbers = sum(
        not isinstance(value, bool) and math.isfinite(plots.number_of(value)) for value in some
    )
    if dates > len(some) / 2 and dates >= numbers:
        return "datetime"
    return "linear" if numbers * 2 > len(some) else "categorical"


def end_of(axis, end):
    """An end of a range as a place."""
    if end is None:
        return None
    if axis.scale == "log":
        power = plots.number_of(end)
        return 10.0**power if -300 < power < 300 else None
    if axis.scale == "datetime":
        place = plots.days_of(end)
    else:
        place = plots.number_of(end)
    return place if math.isfinite(place) else None


def order_of(axis, options):
    """Sorts the categories of an axis."""
    if axis.scale != "categorical":
        return
    order = options.get("categoryorder")
    given = [plots.name_of(name) for name in list_of(options.get("categoryarray"))]
    names = axis.categories
    if given and order in (None, "array"):
        rest = [name for name in names if name not in given]
        # Those that px names and no trace has are left out, as plotly does at the ends.
        names[:] = [name for name in given if name in names] + rest
    elif order in ("category ascending", "category descending"):
        names.sort(reverse=order.endswith("descending"))
    elif isinstance(order, str) and order.startswith(("total", "sum", "max", "min", "mean")):
        totals = axis.totals
        descending = order.endswith("descending")
        names.sort(key=lambda name: totals.get(name, 0), reverse=descending)


def add_shapes(layout, plot):
    for shape in list_of(layout.own.get("shapes"))[:200]:
        shape = dict_of(shape)
        panel, ends = shape_place(layout, shape)
        if panel is None:
            continue
        line = dict_of(shape.get("line"))
        color = color_of(line.get("color"), default=plot.style["text"])
        options = {"color": color, "width": number(line.get("width"), 2)}
        options |= {"dash": dash_of(line.get("dash")), "label": None}
        x, y = ends
        across = [str(shape.get(f"{name}ref", "")).endswith(("domain", "paper")) for name in "xy"]
        if shape.get("type", "line") == "line":
            if across[0]:
                panel.series.append(plots.Series("rule", [], y[:1], **options))
            elif across[1]:
                panel.series.append(plots.Series("rule", x[:1], [], **options))
            else:
                starts = {"x_end": x[1:], "y_end": y[1:]}
                panel.series.append(plots.Series("segments", x[:1], y[:1], **options, **starts))
        elif shape.get("type") == "rect":
            opacity = number(shape.get("opacity"), 1)
            options = {"color": color_of(shape.get("fillcolor"), opacity, "none")}
            if across[0] != across[1]:
                series = plots.Series("span", *(([], y) if across[0] else (x, [])), **options)
            else:
                corners = [x[0], x[1], x[1], x[0]], [y[0], y[0], y[1], y[1]]
                series = plots.Series("polygon", *corners, **options)
            panel.series.append(series)


def shape_place(layout, shape):
    """The panel of a shape, and its ends there."""
    names = []
    for name in "xy":
        said = str(shape.get(f"{name}ref", name)).split(" ")[0]
        names.append(said if said != "paper" else None)
    for (x, y), panel in layout.panels.items():
        if names[0] in (x, None) and names[1] in (y, None):
            ends = [[shape.get(f"{name}{end}") for end in "01"] for name in "xy"]
            return panel, ends
    return None, None


def add_notes(layout, plot):
    for note in list_of(layout.own.get("annotations"))[:200]:
        note = dict_of(note)
        text = text_of(note.get("text"))
        if text is None or note.get("visible") is False:
            continue
        font = dict_of(note.get("font"))
        size = number(font.get("size"), 12)
        options = {"fontsize": min(max(size * PIXEL, 5), 30)}
        options["rotation"] = -number(note.get("textangle"), 0)
        if color_of(font.get("color")):
            options["color"] = color_of(font["color"])
        x, y = str(note.get("xref") or "x"), str(note.get("yref") or "y")
        panel = layout.panels.get((x.split(" ")[0], y.split(" ")[0]))
        if panel is None:
            at = [plots.number_of(note.get(name)) for name in "xy"]
            if x == "paper" and y == "paper" and all(map(math.isfinite, at)):
                anchors(options, note, at)
                plot.notes.append((*at, text, options))
            continue
        if "domain" in x or "domain" in y:
            options |= {
                "xycoords": tuple("axes fraction" if "domain" in one else "data" for one in (x, y))
            }
        if note.get("showarrow", True):
            shift = [
                number(note.get(name), default) for name, default in (("ax", -10), ("ay", -30))
            ]
            options |= {"xytext": (shift[0] * PIXEL, -shift[1] * PIXEL)}
            options |= {"textcoords": "offset points", "ha": "center"}
            options["va"] = "bottom" if shift[1] <= 0 else "top"
            color = color_of(note.get("arrowcolor"), default=plot.style["text"])
            options["arrowprops"] = {"arrowstyle": "->", "color": color, "shrinkA": 0}
        else:
            anchors(options, note, (0.5, 0.5))
        panel.notes.append(
            (note_at(panel.x, note.get("x")), note_at(panel.y, note.get("y")), text, options)
        )


def note_at(axis, value):
    """A note's place; on a logarithmic axis it is given as a power."""
    if axis.scale == "log" and -300 < plots.number_of(value) < 300:
        return 10.0 ** plots.number_of(value)
    return value


def anchors(options, note, at):
    x, y = note.get("xanchor", "auto"), note.get("yanchor", "auto")
    sides = ["center", "center"]
    for way, place in enumerate(at):
        if place < 1 / 3:
            sides[way] = ("left", "bottom")[way]
        elif place > 2 / 3:
            sides[way] = ("right", "top")[way]
    options["ha"] = SIDES.get(x, sides[0])
    options["va"] = LEVELS.get(y, sides[1])
    if options["rotation"] % 180:
        options["rotation_mode"] = "anchor" if options["ha"] == "center" else "default"
