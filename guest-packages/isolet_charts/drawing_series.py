"""Series of plots as matplotlib draws them."""

import io
import itertools
import math

from . import plots

PIXEL = 72 / 96  # points of a pixel of a page
MOST_POINTS = 50_000  # of one series; more of them are thinned out
MOST_BARS = 1_000


class Artist:
    """Draws series on axes. Each method returns what the legend shows."""

    def __init__(self, style):
        self.style = style
        self.handles = {}  # what the legend shows, by label

    def draw(self, axes, panel, series):
        handle = getattr(self, f"draw_{series.kind}")(axes, panel, series)
        if handle is not None and series.label and series.in_legend:
            self.handles.setdefault(series.label, handle)

    def draw_line(self, axes, panel, series):
        x, y = panel.x.places(series.x), panel.y.places(series.y)
        color, alpha = series.color, series.alpha
        if series.has_area:
            base = series.base if series.base is not None else [0.0] * len(x)
            if series.lies:
                axes.fill_betweenx(y, base, x, color=color, alpha=alpha, linewidth=0)
            else:
                step = series.step
                axes.fill_between(x, base, y, color=color, alpha=alpha, linewidth=0, step=step)
            if not series.width:
                return patch(color, alpha)
        x, y, errors = thinned(x, y, series.errors)
        if errors:
            axes.errorbar(x, y, yerr=errors, fmt="none", ecolor=color, elinewidth=1, capsize=3)
        steps = {"pre": "steps-pre", "post": "steps-post", "mid": "steps-mid", None: "default"}
        (line,) = axes.plot(
            x,
            y,
            color=color,
            linewidth=(series.width or 2) * PIXEL,
            linestyle=series.dash or "-",
            drawstyle=steps[series.step],
            marker=series.symbol if series.has_markers else None,
            markersize=6 * PIXEL,
            alpha=None if series.has_area else alpha,
        )
        self.write_texts(axes, panel, series)
        return line

    def draw_scatter(self, axes, panel, series):
        x, y, sizes, colors, values, errors = thinned(
            panel.x.places(series.x),
            panel.y.places(series.y),
            series.sizes,
            series.colors,
            series.values,
            series.errors,
        )
        sizes = 6 if sizes is None else sizes
        sizes = [sizes] * len(x) if isinstance(sizes, (int, float)) else sizes
        sizes = [(min(max(size, 0.5), 400) * PIXEL) ** 2 if size else 0 for size in sizes]
        options = {"s": sizes, "marker": series.symbol, "alpha": series.alpha}
        if values is not None:
            options |= self.mapped(series, values)
        elif series.is_hollow:
            edge = colors or series.color
            options |= {"facecolors": "none", "edgecolors": edge, "linewidths": 1.5}
        else:
            options |= {"c": colors or [series.color], "linewidths": 0}
            if series.symbol in ("x", "+", "|", "_", "*"):
                options["linewidths"] = 1.5
        if errors:
            color = series.color
            axes.errorbar(x, y, yerr=errors, fmt="none", ecolor=color, elinewidth=1, capsize=3)
        drawn = axes.scatter(x, y, zorder=2.2, **options)
        self.write_texts(axes, panel, series)
        if series.label is None or not series.in_legend:
            return drawn
        sample = options | {"s": [36 * PIXEL**2]}
        if values is not None or colors is not None:
            sample = {"s": [36 * PIXEL**2], "marker": series.symbol, "c": ["#888888"]}
        from matplotlib.figure import Figure

        return Figure().add_subplot().scatter([0], [0], **sample)

    def mapped(self, series, values):
        """Colors of numbers, as matplotlib's functions take them."""
        import numpy as np

        colors, norm = color_map(series.scale)
        if series.is_hollow:
            numbers = np.array([plots.number_of(value) for value in values], float)
            return {"facecolors": "none", "edgecolors": colors(norm(numbers)), "linewidths": 1.5}
        numbers = [plots.number_of(value) for value in values]
        return {"c": numbers, "cmap": colors, "norm": norm, "linewidths": 0}

    def draw_text(self, axes, panel, series):
        self.write_texts(axes, panel, series)
        # Texts do not widen the axes.
        axes.scatter(panel.x.places(series.x), panel.y.places(series.y), s=0)

    def write_texts(self, axes, panel, series):
        if series.texts is None:
            return
        over = 0 if series.kind == "text" else 7 * PIXEL
        places = zip(panel.x.places(series.x), panel.y.places(series.y))
        for number, (at, text) in enumerate(zip(places, series.texts[:500])):
            if text and all(map(math.isfinite, at)):
                offset = series.offset or (0, over)
                options = {"ha": "center", "va": "center" if offset[1] == 0 else "bottom"}
                options |= series.text_options or {}
                color = self.style["text"]
                if series.kind == "text":
                    color = (series.colors and series.colors[number]) or series.color or color
                axes.annotate(
                    safe(text),
                    at,
                    offset,
                    textcoords="offset points",
                    color=color,
                    clip_on=True,
                    annotation_clip=True,
                    **options,
                )

    def draw_bar(self, axes, panel, series):
        along = panel.y if series.lies else panel.x
        at = along.places(series.x)
        lengths = [plots.number_of(one) for one in series.y]
        across = panel.x if series.lies else panel.y
        if across.scale == "datetime":
            starts = series.base or [0.0] * len(at)
            lengths = [across.place(one) - base for one, base in zip(series.y, starts)]
        number, count = series.slot
        widths = series.widths
        if widths is None:
            widths = [spacing(at, along) * (0.8 if count == 1 else 0.84)] * len(at)
        at = [place + width * ((number + 0.5) / count - 0.5) for place, width in zip(at, widths)]
        widths = [width / count for width in widths]
        at, lengths, widths, base, colors, values, texts = thinned(
            at,
            lengths,
            widths,
            series.base,
            series.colors,
            series.values,
            series.texts,
            most=MOST_BARS,
        )
        base = base or [0.0] * len(at)
        if values is not None:
            map_of, norm = color_map(series.scale)
            colors = [map_of(norm(plots.number_of(value))) for value in values]
        color = colors or series.color
        edge = series.edge
        options = {"color": color, "alpha": series.alpha, "edgecolor": edge or self.style["face"]}
        # Not between the many parts of a bar.
        few = len(at) < 300 and len(at) <= 4 * len(set(at))
        options["linewidth"] = 0.5 if edge or few else 0
        if series.errors:
            options["xerr" if series.lies else "yerr"] = series.errors
            options["error_kw"] = {"elinewidth": 1, "capsize": 3, "ecolor": self.style["text"]}
        if series.lies:
            drawn = axes.barh(at, lengths, height=widths, left=base, **options)
        else:
            drawn = axes.bar(at, lengths, width=widths, bottom=base, **options)
        # No space between a bar and the axis that it stands on.
        for bar in drawn:
            sticky = bar.sticky_edges.x if series.lies else bar.sticky_edges.y
            sticky[:] = [0] if not any(base) else []
        if texts:
            where = "edge" if series.text_outside else "center"
            if where == "center":
                self.write_inside(axes, drawn, texts)
            else:
                labels = [safe(text or "") for text in texts]
                labels = axes.bar_label(drawn, labels, padding=2, fontsize=8)
                for label in labels:
                    label.set_color(self.style["text"])
                axes.margins(**{"x" if series.lies else "y": 0.1})
        return drawn

    def write_inside(self, axes, drawn, texts):
        for bar, text in zip(drawn, texts[:500]):
            color = "white" if is_dark(bar.get_facecolor()) else "#222222"
            at = bar.get_x() + bar.get_width() / 2, bar.get_y() + bar.get_height() / 2
            if text and all(map(math.isfinite, at)):
                options = {"ha": "center", "va": "center", "color": color, "fontsize": 8}
                axes.text(*at, safe(text), clip_on=True, **options)

    def draw_box(self, axes, panel, series):
        along = panel.y if series.lies else panel.x
        found = [(along.place(x), box) for x, box in zip(series.x, series.boxes()) if box]
        if not found:
            return None
        number, count = series.slot
        unit = spacing([at for at, _ in found], along)
        shift = unit * 0.8 * ((number + 0.5) / count - 0.5)
        beside = series.outside is None and not series.is_hidden
        names = {"min": "whislo", "max": "whishi", "first_quartile": "q1", "median": "med"}
        names |= {"third_quartile": "q3", "outliers": "fliers"}
        stats = [{names[name]: value for name, value in box.items()} for _, box in found]
        color, line = series.color, {"color": series.color, "linewidth": 1.5}
        hidden = series.is_hidden
        if not hidden:
            face = series.face or faded(color)
            drawn = axes.bxp(
                stats,
                positions=[at + shift + (unit * 0.15 / count if beside else 0) for at, _ in found],
                widths=unit * (0.45 if beside else 0.6) / count,
                orientation="horizontal" if series.lies else "vertical",
                manage_ticks=False,
                patch_artist=True,
                boxprops={"facecolor": face, "edgecolor": color, "linewidth": 1.5},
                medianprops=line | {"color": series.median_color or color},
                whiskerprops=line,
                capprops=line,
                showfliers=series.outside is True,
                flierprops={
                    "marker": "o",
                    "markersize": 4,
                    "markerfacecolor": color,
                    "markeredgewidth": 0,
                },
            )
        if series.outside is None:
            middle = 0 if hidden else -unit * 0.27 / count
            self.jitter(axes, series, along, shift + middle, unit * 0.12 / count)
        return patch(color, 0.6) if hidden else drawn["boxes"][0]

    def jitter(self, axes, series, along, shift, reach):
        """All points beside a box."""
        for x, numbers in zip(series.x, series.y):
            if isinstance(numbers, dict):
                continue
            numbers = plots.numbers_of(numbers)[: plots.limits.MOST_POINTS]
            # Evenly spread, and the same in each picture.
            at = [
                along.place(x) + shift + reach * ((number * 0.618034) % 1 - 0.5) * 2
                for number in range(len(numbers))
            ]
            pair = (numbers, at) if series.lies else (at, numbers)
            axes.scatter(*pair, s=16, color=series.color, alpha=0.7, linewidths=0)

    def draw_violin(self, axes, panel, series):
        along = panel.y if series.lies else panel.x
        number, count = series.slot
        unit = spacing(along.places(series.x), along)
        shift = unit * 0.8 * ((number + 0.5) / count - 0.5)
        fill = axes.fill_betweenx if not series.lies else axes.fill_between
        drawn = None
        for x, numbers in zip(series.x, series.y):
            numbers = plots.numbers_of(numbers)
            if not numbers:
                continue
            low, high = min(numbers), max(numbers)
            reach = (high - low) * 0.15 or 1
            places = [low - reach + (high - low + 2 * reach) * part / 80 for part in range(81)]
            widths = plots.density(numbers, places)
            most = max(widths) or 1
            middle = along.place(x) + shift
            sides = [unit * 0.38 / count * width / most for width in widths]
            options = {"facecolor": faded(series.color), "edgecolor": series.color}
            left = [middle - side for side in sides]
            drawn = fill(places, left, [middle + side for side in sides], linewidth=1.5, **options)
        if series.has_box:
            inner = plots.Series("box", series.x, series.y, inset=0.5)
            inner.color, inner.lies = series.color, series.lies
            inner.slot = (number * 4 + 1.5, count * 4)
            inner.outside = False
            self.draw_box(axes, panel, inner)
        if series.outside is None:
            self.jitter(axes, series, along, shift - unit * 0.3 / count, unit * 0.1 / count)
        return drawn

    def draw_pie(self, axes, panel, series):
        parts = [max(plots.number_of(part), 0) for part in series.y]
        found = [
            (name, part, color)
            for name, part, color in zip(map(plots.name_of, series.x), parts, series.colors)
            if math.isfinite(part) and part > 0
        ][:200]
        whole = sum(part for _, part, _ in found)
        if not found:
            return None
        edge = {"linewidth": 0.8, "edgecolor": self.style["back"]}
        if series.hole:
            edge["width"] = 1 - min(series.hole, 0.95)
        wedges, *_ = axes.pie(
            [part for _, part, _ in found],
            colors=[color for _, _, color in found],
            startangle=90,
            counterclock=False,
            wedgeprops=edge,
        )
        texts = series.write
        middle = (1 + series.hole) / 2 if series.hole else 0.62
        for wedge, (name, part, _) in zip(wedges, found):
            if series.in_legend:
                self.handles.setdefault(name, wedge)
            text = texts(name, part, whole) if texts else None
            if text and part / whole > 0.025:
                angle = math.radians((wedge.theta1 + wedge.theta2) / 2)
                options = {"ha": "center", "va": "center"}
                options["color"] = "white" if is_dark(wedge.get_facecolor()) else "#222222"
                at = middle * math.cos(angle), middle * math.sin(angle)
                axes.text(*at, safe(text), **options)
        return None

    def draw_heatmap(self, axes, panel, series):
        import numpy as np

        values = np.array([[plots.number_of(cell) for cell in row] for row in series.z], float)
        if values.ndim != 2 or not values.size or values.size > plots.MOST_CELLS:
            return None
        edges = [
            edges_of(axis.places(places), size)
            for axis, places, size in (
                (panel.x, series.x, values.shape[1]),
                (panel.y, series.y, values.shape[0]),
            )
        ]
        colors, norm = color_map(series.scale)
        masked = np.ma.masked_invalid(values)
        axes.pcolormesh(*edges, masked, cmap=colors, norm=norm, rasterized=True)
        if series.texts and values.size <= 2500:
            for row, texts in enumerate(series.texts[: values.shape[0]]):
                for column, text in enumerate(texts[: values.shape[1]]):
                    if text and math.isfinite(values[row, column]):
                        at = [(some[i] + some[i + 1]) / 2 for some, i in zip(edges, (column, row))]
                        dark = is_dark(colors(norm(values[row, column])))
                        options = {"ha": "center", "va": "center", "clip_on": True}
                        axes.text(*at, safe(text), color="white" if dark else "#222222", **options)
        return None

    def draw_image(self, axes, panel, series):
        import numpy as np

        if isinstance(series.z, bytes):
            from matplotlib.image import imread

            rows = imread(io.BytesIO(series.z))
        else:
            rows = np.asarray(series.z, float).clip(0, 255) / 255
        low = -0.5, rows.shape[1] - 0.5, rows.shape[0] - 0.5, -0.5
        axes.imshow(rows, extent=low, aspect="equal", interpolation="nearest", zorder=1)

    def draw_rule(self, axes, panel, series):
        options = {"color": series.color, "linewidth": (series.width or 1.5) * PIXEL}
        options |= {"linestyle": series.dash or "-", "alpha": series.alpha}
        drawn = None
        for at in panel.x.places(series.x[:1000]):
            drawn = axes.axvline(at, **options)
        for at in panel.y.places(series.y[:1000]):
            drawn = axes.axhline(at, **options)
        return drawn

    def draw_span(self, axes, panel, series):
        """A stripe across the panel, between two values of an axis."""
        options = {"color": series.color, "alpha": series.alpha, "linewidth": 0, "zorder": 0.6}
        if series.x:
            return axes.axvspan(*panel.x.places(series.x), **options)
        return axes.axhspan(*panel.y.places(series.y), **options)

    def draw_segments(self, axes, panel, series):
        from matplotlib.collections import LineCollection

        starts = zip(panel.x.places(series.x), panel.y.places(series.y))
        ends = zip(panel.x.places(series.x_end), panel.y.places(series.y_end))
        lines = list(zip(starts, ends))[:MOST_POINTS]
        lines = [line for line in lines if all(math.isfinite(at) for end in line for at in end)]
        options = {"colors": series.colors or series.color, "alpha": series.alpha}
        options |= {"linewidths": (series.width or 1) * PIXEL, "linestyles": series.dash or "-"}
        drawn = LineCollection(lines, **options)
        axes.add_collection(drawn, autolim=True)
        axes.autoscale_view()
        return drawn

    def draw_polygon(self, axes, panel, series):
        x, y = panel.x.places(series.x), panel.y.places(series.y)
        (drawn,) = axes.fill(x, y, color=series.color, alpha=series.alpha, linewidth=0)
        return drawn


def safe(text):
    """A text that is no formula, and not too long."""
    lines = [line[:300] for line in str(text).split("\n")[:30]]
    return "\n".join(lines).replace("$", "\\$")


def thinned(first, *others, most=MOST_POINTS):
    """Lists with at most so many of their items, evenly chosen."""
    step = -(-len(first) // most) if len(first) > most else 1
    if step == 1:
        return (first, *others)
    lists = []
    for one in (first, *others):
        if isinstance(one, tuple):
            one = tuple(part[::step] for part in one)
        lists.append(one[::step] if isinstance(one, list) else one)
    return lists


def patch(color, alpha=None):
    from matplotlib.patches import Patch

    return Patch(color=color, alpha=alpha)


def faded(color):
    """The color with which plotly fills what has a line of a color."""
    from matplotlib.colors import to_rgba

    return (*to_rgba(color)[:3], 0.5)


def is_dark(color):
    from matplotlib.colors import to_rgba

    red, green, blue, opacity = to_rgba(color)
    return 1 - opacity * (1 - (0.3 * red + 0.59 * green + 0.11 * blue)) < 0.6


def color_map(scale):
    """A map of colors, and where numbers are on it."""
    from matplotlib import colormaps
    from matplotlib.colors import LinearSegmentedColormap, Normalize, TwoSlopeNorm

    low, high = scale.low, scale.high
    if scale.middle is not None and low <= scale.middle <= high:
        reach = max(scale.middle - low, high - scale.middle) or 1
        norm = TwoSlopeNorm(scale.middle, scale.middle - reach, scale.middle + reach)
    else:
        norm = Normalize(low, high if high > low else low + 1)
    if isinstance(scale.colors, str):
        return colormaps[scale.colors], norm
    return LinearSegmentedColormap.from_list("scale", scale.colors), norm


def spacing(places, axis):
    """The space of one of the bars at these places."""
    if axis.scale == "categorical":
        return 1.0
    places = sorted({place for place in places if math.isfinite(place)})
    gaps = [b - a for a, b in itertools.pairwise(places)]
    return min((gap for gap in gaps if gap > 0), default=1.0)


def edges_of(places, count):
    """Where cells begin and end, from their middles, or as they are given."""
    if len(places) == count + 1:
        return places
    if len(places) != count:
        places = [float(number) for number in range(count)]
    if count == 1:
        return [places[0] - 0.5, places[0] + 0.5]
    middles = [(a + b) / 2 for a, b in itertools.pairwise(places)]
    first, last = 2 * places[0] - middles[0], 2 * places[-1] - middles[-1]
    return [first, *middles, last]
