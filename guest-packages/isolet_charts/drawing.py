"""Draws plots (`plots.py`) with matplotlib's Agg. It leaves matplotlib's settings as they are."""

import io
import itertools
import math
import warnings

from . import plots
from .drawing_series import Artist, color_map, safe

DPI = 120
BARE = {"line", "rule", "span", "polygon"}  # lines of these alone go from edge to edge
MOST_PIXELS = 4000  # of a picture's side
LONGEST = 36  # characters of a name on an axis
SETTINGS = {
    "font.size": 8.5,
    "axes.titlesize": 10,
    "axes.labelsize": 9.5,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "axes.linewidth": 0.7,
    "path.simplify": True,
    "agg.path.chunksize": 10_000,
}


def draw(plot):
    """The picture of a plot as PNG; None if there is nothing on it."""
    import matplotlib

    if not any(panel.series for panel in plot.panels):
        return None
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that no font has
        settings = matplotlib.rcParamsDefault
        matplotlib.rcParams.update({name: settings[name] for name in settings if is_look(name)})
        matplotlib.rcParams.update(SETTINGS)
        return Drawing(plot).png()


def is_look(name):
    """Whether a setting is of what a picture looks like, and not of the program."""
    starts = ("axes", "font", "text", "lines", "patch", "figure", "savefig", "xtick", "ytick")
    more = ("hatch", "legend", "image", "path", "agg", "mathtext", "markers", "boxplot", "grid")
    return name.partition(".")[0] in starts + more


class Drawing:
    def __init__(self, plot):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.plot = plot
        self.style = {"back": "white", "face": "white", "grid": "#dddddd", "text": "#333333"}
        self.style |= plot.style
        self.width = min(max(plot.width, 150), 2500)
        self.height = min(max(plot.height, 120), 2500)
        size = (self.width / 96, self.height / 96)
        self.figure = Figure(size, DPI, facecolor=self.style["back"])
        FigureCanvasAgg(self.figure)
        self.artist = Artist(self.style)
        self.scales = []
        self.axes = {}  # of each panel

    def png(self):
        plot = self.plot
        some = plot.panels[: plots.limits.MOST_AXES]
        self.fit_scales([series for panel in some for series in panel.series])
        for panel in some:
            self.add(panel)
        self.share_ranges()
        for panel, axes in self.axes.items():
            self.finish(panel, axes)
        for axes in self.axes.values():
            axes.apply_aspect()
        for panel, axes in self.axes.items():
            turn_names(self.figure, panel, axes)
        if plot.tree is not None:
            self.place(plot.tree, 0, 0)
        left, bottom, right, top = self.area()
        for x, y, text, options in plot.notes:
            x, y = (min(max(place, -0.5), 1.5) for place in (x, y))
            at = left + x * (right - left), bottom + y * (top - bottom)
            self.figure.text(*at, safe(text), **{"color": self.style["text"]} | options)
        edge = self.color_bars(right)
        self.legend(edge)
        self.title()
        return self.saved()

    def area(self):
        """The part of the figure that the panels lie in."""
        left, bottom = 0.08, 0.1
        if self.plot.tree is None:
            return left, bottom, 1 - left, 1 - bottom
        boxes = [axes.get_position() for axes in self.axes.values()]
        low = [min(box.x0 for box in boxes), min(box.y0 for box in boxes)]
        return (*low, max(box.x1 for box in boxes), max(box.y1 for box in boxes))

    def fit_scales(self, every):
        """Gives scales of colors without ends those of their numbers."""
        for series in every:
            if series.scale is not None and series.scale not in self.scales:
                self.scales.append(series.scale)
        for scale in self.scales:
            some = [series for series in every if series.scale is scale]
            cells = [cell for one in some for row in one.z or [one.values or []] for cell in row]
            numbers = plots.numbers_of(cells) or [0, 1]
            scale.low = min(numbers) if scale.low is None else scale.low
            scale.high = max(numbers) if scale.high is None else scale.high

    def add(self, panel):
        left, bottom, right, top = self.area() if self.plot.tree is None else (0.1, 0.1, 0.9, 0.9)
        x0, y0, x1, y1 = panel.place
        x0, x1 = (left + x * (right - left) for x in (x0, x1))
        y0, y1 = (bottom + y * (top - bottom) for y in (y0, y1))
        if panel.size:
            x1, y1 = x0 + panel.size[0] / self.width, y0 + panel.size[1] / self.height
        axes = self.figure.add_axes((x0, y0, max(x1 - x0, 0.01), max(y1 - y0, 0.01)))
        axes.set_facecolor("none" if panel.is_over else self.style["face"])
        self.axes[panel] = axes
        for name, axis in (("x", panel.x), ("y", panel.y)):
            if axis.scale in ("log", "symlog"):
                getattr(axes, f"set_{name}scale")(axis.scale)
            if axis.scale == "categorical":
                # In the order of the axis, also if a series has them in another.
                axis.places(axis.categories)
        if any(series.kind == "pie" for series in panel.series):
            axes.set_axis_off()
        for series in panel.series:
            self.artist.draw(axes, panel, series)
        for x, y, text, options in panel.notes:
            options = {
                "color": self.style["text"],
            } | options
            ways = options.get("xycoords", ("data", "data"))
            at = [
                axis.place(one) if way == "data" else plots.number_of(one)
                for axis, one, way in zip((panel.x, panel.y), (x, y), ways)
            ]
            if all(map(math.isfinite, at)):
                axes.annotate(safe(text), at, annotation_clip=True, **options)

    def share_ranges(self):
        """Gives axes of the same group the same range."""
        groups = {}
        for panel, axes in self.axes.items():
            if any(series.kind == "pie" for series in panel.series):
                continue
            for name, axis in (("x", panel.x), ("y", panel.y)):
                groups.setdefault((name, axis.group), []).append((panel, axis, axes))
        for (name, _), some in groups.items():
            found = [self.range_of(name, panel, axis, axes) for panel, axis, axes in some]
            found = [pair for pair in found if pair is not None] or [(0, 1)]
            low, high = min(low for low, _ in found), max(high for _, high in found)
            given = next((axis.range for _, axis, _ in some if axis.range), (None, None))
            low, high = (end if at is None else at for at, end in zip(given, (low, high)))
            if low == high:
                low, high = low - 0.5, high + 0.5
            if some[0][1].is_reversed:
                low, high = high, low
            for _, _, axes in some:
                getattr(axes, f"set_{name}lim")(low, high)

    def range_of(self, name, panel, axis, axes):
        if not panel.series:
            return None
        if axis.scale == "categorical":
            return -0.5, max(len(axis.categories), 1) - 0.5
        kinds = {series.kind for series in panel.series}
        lines = [series for series in panel.series if series.kind == "line"]
        is_bare = all(not (series.has_markers or series.errors) for series in lines)
        if {"heatmap", "image"} & kinds or lines and kinds <= BARE and is_bare and name == "x":
            axes.margins(**{name: 0})
        axes.autoscale_view()
        low, high = getattr(axes, f"get_{name}lim")()
        if axis.from_zero and axis.scale == "linear":
            low, high = min(low, 0), max(high, 0)
            data = axes.dataLim.intervalx if name == "x" else axes.dataLim.intervaly
            low = 0 if data[0] >= 0 else low
            high = 0 if data[1] <= 0 else high
        return min(low, high), max(low, high)

    def finish(self, panel, axes):
        style = self.style
        for side in axes.spines.values():
            side.set_visible(style.get("frame", False) and not panel.is_over)
            side.set_color(style["grid"])
        axes.tick_params(
            colors=style["text"], length=3 if style.get("ticks") else 0, color=style["grid"]
        )
        axes.tick_params(which="minor", length=0)
        for name, axis, drawn in (("x", panel.x, axes.xaxis), ("y", panel.y, axes.yaxis)):
            box = axes.get_window_extent()
            set_ticks(axis, drawn, (box.width / 55 if name == "x" else box.height / 30) * 96 / DPI)
            has_grid = axis.has_grid
            if has_grid is None:
                has_grid = not panel.is_over
            if has_grid and style["grid"] != "none":
                drawn.grid(True, color=style["grid"], linewidth=0.8)
            if not axis.is_shown or not axis.has_labels:
                drawn.set_tick_params(labelbottom=False, labelleft=False, length=0)
            if axis.is_shown and axis.title:
                drawn.set_label_text(safe(axis.title), color=style["text"])
        if panel.is_over:
            axes.yaxis.tick_right()
            axes.yaxis.set_label_position("right")
            axes.xaxis.set_visible(False)
        if any(series.kind == "image" for series in panel.series):
            axes.set_aspect("equal")
        if panel.is_equal:
            axes.set_aspect("equal", adjustable="box")
        if panel.title:
            axes.set_title(safe(panel.title), color=style["text"])

    def place(self, tree, x, y):
        """Places a tree, whose first panel's left top corner is given, in pixels from the left and
        from the top; returns how far it goes beyond: left, top, right, bottom.
        """
        if isinstance(tree, list):
            return self.place_panels(tree, x, y)
        way, trees = tree
        edges = None
        for part in trees:
            found = self.place(part, x, y)
            if edges is not None:
                # As far away as its labels need; moved there once they are known.
                gap = 16
                if way == "row":
                    found = self.place(part, edges[2] + gap + x - found[0], y)
                else:
                    found = self.place(part, x, edges[3] + gap + y - found[1])
            pairs = list(zip(edges or found, found))
            edges = (*map(min, pairs[:2]), *map(max, pairs[2:]))
        return edges

    def place_panels(self, panels, x, y):
        box = None
        for panel in panels:
            axes = self.axes.get(panel)
            if axes is None:
                continue
            width, height = panel.size
            width, height = width / self.width, height / self.height
            at = (x / self.width, 1 - y / self.height - height, width, height)
            axes.set_position(at)
            found = axes.get_tightbbox(self.figure.canvas.get_renderer())
            box = box.union([box, found]) if box is not None else found
        if box is None:
            return x, y, x, y
        scale = DPI / 96
        tall = self.height * scale
        return box.x0 / scale, (tall - box.y1) / scale, box.x1 / scale, (tall - box.y0) / scale

    def color_bars(self, edge):
        """Adds a bar for each scale beside the panels; returns where they end."""
        left, bottom, right, top = self.area()
        edge = right + 16 / self.width
        if any(panel.is_over for panel in self.axes):
            edge += 50 / self.width
        for scale in [scale for scale in self.scales if scale.is_shown][:4]:
            from matplotlib.cm import ScalarMappable

            colors, norm = color_map(scale)
            tall = min(top - bottom, 400 / self.height)
            place = (edge, (bottom + top - tall) / 2, 14 / self.width, tall)
            axes = self.figure.add_axes(place)
            bar = self.figure.colorbar(ScalarMappable(norm, colors), cax=axes)
            bar.outline.set_visible(False)
            axes.tick_params(colors=self.style["text"], length=0)
            if scale.title:
                axes.set_title(
                    safe(scale.title), color=self.style["text"], fontsize=8.5, loc="left"
                )
            box = axes.get_tightbbox(self.figure.canvas.get_renderer())
            edge = box.x1 / DPI * 96 / self.width + 16 / self.width
        return edge

    def legend(self, edge):
        plot = self.plot
        if not plot.has_legend or not self.artist.handles:
            return
        handles = dict(itertools.islice(self.artist.handles.items(), 40))
        options = {"loc": "upper left", "bbox_to_anchor": (edge, self.area()[3])}
        if plot.legend:
            left, bottom, right, top = self.area()
            x, y, is_flat, at = plot.legend
            x, y = left + x * (right - left), bottom + y * (top - bottom)
            options = {"loc": at, "bbox_to_anchor": (x, y)}
            if is_flat:
                options["ncols"] = min(len(handles), 6)
        labels = [safe(shortened(label)) for label in handles]
        title = plot.legend_title
        legend = self.figure.legend(
            list(handles.values()),
            labels,
            title=safe(title) if title else None,
            labelcolor=self.style["text"],
            borderaxespad=0,
            **options,
        )
        legend.get_title().set_color(self.style["text"])
        legend._legend_box.align = "left"

    def title(self):
        """The title, above all panels, and what is not drawn."""
        text = self.plot.title or ""
        missing = list(dict.fromkeys(self.plot.missing))[:6]
        box = self.figure.get_tightbbox(self.figure.canvas.get_renderer())
        left = self.area()[0]
        top = box.y1 * 96 / self.height
        gap = 10 / self.height
        if missing:
            note = f"not drawn: {', '.join(missing)}"
            at = left, top + gap
            self.figure.text(*at, safe(note), color="#b04030", fontsize=8.5, va="bottom")
            top += 24 / self.height
        if text:
            options = {"va": "bottom", "color": self.style["text"], "fontsize": 12.5}
            self.figure.text(left, top + gap, safe(text), **options)

    def saved(self):
        file = io.BytesIO()
        box = self.figure.get_tightbbox(self.figure.canvas.get_renderer())
        dpi = min(DPI, MOST_PIXELS / max(box.width, box.height, 1))
        self.figure.savefig(
            file, format="png", dpi=dpi, bbox_inches="tight", pad_inches=0.12, metadata={}
        )
        return file.getvalue()


def shortened(name):
    name = name.replace("\n", " ") if "<" not in name else name
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def set_ticks(axis, drawn, most):
    """Gives an axis of matplotlib the places and labels of ours, as many as there is space for."""
    from matplotlib import dates, ticker

    if axis.scale == "categorical":
        names = axis.categories
        step = -(-len(names) // 60)  # more cannot be read
        drawn.set_ticks(range(0, len(names), step), [safe(shortened(n)) for n in names[::step]])
    elif axis.ticks:
        places, labels = zip(*axis.ticks[:200])
        drawn.set_ticks(
            [axis.place(place) for place in places], [safe(shortened(n)) for n in labels]
        )
    elif axis.scale == "datetime":
        locator = dates.AutoDateLocator(minticks=2, maxticks=int(min(max(most, 3), 8)))
        drawn.set_major_locator(locator)
        drawn.set_major_formatter(dates.ConciseDateFormatter(locator))
        drawn.get_offset_text().set_size(8)
    elif axis.scale == "linear":
        low, high = drawn.get_view_interval()
        end = max(abs(low), abs(high))
        drawn.set_major_locator(ticker.MaxNLocator(int(min(max(most, 2), 8)), steps=[1, 2, 5, 10]))
        drawn.set_major_formatter(ticker.FuncFormatter(lambda at, _: written(at, end, axis.unit)))
    elif axis.scale == "log":
        low, high = drawn.get_view_interval()
        if low > 0 and high / low < 1e3:
            drawn.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        drawn.set_major_formatter(ticker.FuncFormatter(lambda at, _: written(at, at, axis.unit)))
        drawn.set_minor_formatter(ticker.NullFormatter())


def written(number, most, unit):
    """A number on an axis whose greatest is given."""
    number = 0.0 if abs(number) < most * 1e-9 else number
    if unit == "%":
        return f"{number * 100:.6g}%"
    text = f"{number:.6g}"
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if 1e4 <= most < 1e12 and most >= size:
            text = f"{number / size:.6g}{letter}" if number else "0"
            break
    text = text.replace("-", "\N{MINUS SIGN}") if "e" not in text else text
    return f"\\${text}" if unit == "$" else text


def turn_names(figure, panel, axes):
    """Turns the names below a panel if they do not fit beside each other, and leaves some out if
    they still do not.
    """
    labels = [label for label in axes.get_xticklabels() if label.get_text()]
    if panel.x.scale != "categorical" and not panel.x.ticks or not panel.x.is_shown or not labels:
        return
    width = axes.get_window_extent().width
    slot = width / max(len(labels), 1)
    renderer = figure.canvas.get_renderer()
    longest = max(label.get_window_extent(renderer).width for label in labels)
    if labels[0].get_rotation() or longest < slot * 0.95:
        return
    for number, label in enumerate(labels):
        label.set(rotation=45, ha="right", rotation_mode="anchor")
        label.set_visible(number % math.ceil(15 / slot) == 0)
