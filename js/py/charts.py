"""The data in a figure of matplotlib: axes, labels and series, for who cannot look at it.

The shape is that of E2B's charts: a chart has a `type`, a `title`, what its axes say, and
`elements`.
"""

import datetime
import math

MOST_POINTS = 10_000  # of one series; the first ones are given
MOST_AXES = 64


def describe(figure):
    """The chart of a figure, a `superchart` of several, or None if there is none."""
    found = [chart_of(axes) for axes in figure.axes[:MOST_AXES] if is_chart(figure, axes)]
    found = [chart for chart in found if chart is not None]
    if not found:
        return None
    if len(found) == 1:
        if not found[0]["title"]:
            found[0]["title"] = title_of(figure)
        return found[0]
    return {"type": "superchart", "title": title_of(figure), "elements": found}


def is_chart(figure, axes):
    """Whether these axes are more than the scale of a color bar."""
    return axes.get_visible() and not hasattr(axes, "_colorbar")


def title_of(figure):
    title = getattr(figure, "_suptitle", None)
    return title.get_text() if title is not None else None


def chart_of(axes):
    found = ((kind, series_of(axes)) for kind, series_of in KINDS.items())
    kind, elements = next(((kind, some) for kind, some in found if some), ("unknown", []))
    if not elements and not (axes.images or axes.collections or axes.patches):
        return None
    chart = {"type": kind, "title": axes.get_title() or None, "elements": elements}
    if kind != "pie":
        chart |= axis("x", axes.xaxis) | axis("y", axes.yaxis)
    if kind == "bar" and any(is_across(container) for container in bar_containers(axes)):
        chart["orientation"] = "horizontal"
    if kind == "box_and_whisker" and not boxes_along(axes, axes.xaxis):
        chart["orientation"] = "horizontal"
    return chart


def axis(name, axis):
    scale = scale_of(axis)
    ticks = [place(tick, scale) for tick in axis.get_ticklocs()]
    labels = [label.get_text() for label in axis.get_ticklabels()]
    return {
        f"{name}_label": axis.get_label_text() or None,
        f"{name}_ticks": ticks,
        f"{name}_tick_labels": labels,
        f"{name}_scale": scale,
    }


def place(tick, scale):
    """A place of an axis, as the points have it."""
    import matplotlib.dates

    # An axis of pandas counts in periods.
    if scale != "datetime" or not -719162 <= tick <= 2932896:
        return plain(tick)
    return matplotlib.dates.num2date(tick).isoformat()


def scale_of(axis):
    converter = type(axis.get_converter()).__name__ if hasattr(axis, "get_converter") else ""
    if "Date" in converter:
        return "datetime"
    if "Category" in converter:
        return "categorical"
    return axis.get_scale()


def lines(axes):
    found = []
    for line in axes.get_lines():
        x, y = line.get_xdata(orig=True), line.get_ydata(orig=True)
        if line.get_visible() and len(x) == len(y) and len(x) > 0:
            found.append(series(line.get_label(), x, y))
    return found


def scatters(axes):
    from matplotlib.collections import PathCollection

    found = []
    for collection in axes.collections:
        if type(collection) is PathCollection:
            offsets = collection.get_offsets()
            found.append(series(collection.get_label(), offsets[:, 0], offsets[:, 1]))
    return found


def series(label, x, y):
    points = [[plain(a), plain(b)] for a, b in zip(x[:MOST_POINTS], y[:MOST_POINTS])]
    described = {"label": shown(label), "points": points}
    if len(x) > MOST_POINTS:
        described["points_total"] = len(x)
    return described


def bar_containers(axes):
    from matplotlib.container import BarContainer

    return [container for container in axes.containers if isinstance(container, BarContainer)]


def is_across(container):
    return container.orientation == "horizontal"


def bars(axes):
    found = []
    for container in bar_containers(axes):
        across = is_across(container)
        scale = axes.yaxis if across else axes.xaxis
        names = dict(zip(map(plain, scale.get_ticklocs()), scale.get_ticklabels()))
        for bar in container.patches[:MOST_POINTS]:
            if across:
                at, value = bar.get_y() + bar.get_height() / 2, bar.get_width()
            else:
                at, value = bar.get_x() + bar.get_width() / 2, bar.get_height()
            name = nearest(names, at)
            group = shown(container.get_label())
            found.append({"label": name, "group": group, "value": plain(value)})
    return found


def nearest(names, at):
    """The name at a place of an axis: that of a tick close by, or the number."""
    for place, label in names.items():
        if isinstance(place, (int, float)) and abs(place - at) < 0.5 and label.get_text():
            return label.get_text()
    return f"{plain(at):g}"


def pie(axes):
    from matplotlib.patches import Wedge

    wedges = [patch for patch in axes.patches if isinstance(patch, Wedge)]
    return [
        {
            "label": shown(wedge.get_label()),
            "angle": plain(abs(wedge.theta2 - wedge.theta1)),
            "radius": plain(wedge.r),
        }
        for wedge in wedges[:MOST_POINTS]
    ]


def boxes(axes):
    return boxes_along(axes, axes.xaxis) or boxes_along(axes, axes.yaxis)


def boxes_along(axes, names):
    """Boxes of `boxplot` beside each other on an axis: five numbers each, and what lies outside."""
    from matplotlib.patches import PathPatch

    at, to = (0, 1) if names is axes.xaxis else (1, 0)
    lines = [(line, *line.get_data()) for line in axes.get_lines()]
    lines = [(line, (x, y)[at], (x, y)[to]) for line, x, y in lines]
    # Those without a face are closed lines.
    drawn = [line for line, x, y in lines if len(x) == 5 and (x[0], y[0]) == (x[4], y[4])]
    drawn += [patch for patch in axes.patches if type(patch) is PathPatch]
    found = []
    others = [one for one in lines if len(one[1]) not in (0, 5)]
    names = [label.get_text() for label in names.get_ticklabels()]
    for number, box in enumerate(drawn[:MOST_POINTS]):
        path = box.get_path().vertices
        left, right = path[:, at].min(), path[:, at].max()
        low, high = path[:, to].min(), path[:, to].max()
        inside = [one for one in others if left <= min(one[1]) and max(one[1]) <= right]
        flat = [values[0] for _, _, values in inside if len(values) == 2 and values[0] == values[1]]
        median = [value for value in flat if low <= value <= high]
        caps = [value for value in flat if not low < value < high]
        if not median:
            return []
        outliers = [
            plain(value)
            for line, _, values in inside
            if line.get_linestyle() == "None"
            for value in values[:MOST_POINTS]
        ]
        found.append(
            {
                "label": names[number] if number < len(names) else str(number + 1),
                "min": plain(min([*caps, low])),
                "first_quartile": plain(low),
                "median": plain(median[0]),
                "third_quartile": plain(high),
                "max": plain(max([*caps, high])),
                "outliers": outliers,
            }
        )
    return found


# In this order: a line may be part of a box, and a box has bars of its own.
KINDS = {"pie": pie, "box_and_whisker": boxes, "bar": bars, "scatter": scatters, "line": lines}


def shown(label):
    """A label that someone gave; matplotlib's own begin with an underscore."""
    label = str(label)
    return None if label.startswith("_") else label


def plain(value):
    """A number or date as JSON has it."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (int, float, str)) else str(value)
