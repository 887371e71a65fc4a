"""Values in plotly's figures as Python has them, and what traces say of them."""

import base64
import math

from . import plots
from .colors import color_of
from .number_formats import formatted, written

# Those of numpy's types that plotly encodes, as `memoryview` names them.
CODES = {"i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "f4": "f", "f8": "d"}
CODES["uint8c"] = "B"
PLASMA = "#0d0887 #46039f #7201a8 #9c179e #bd3786 #d8576b #ed7953 #fb9f3a #fdca26 #f0f921".split()
SYMBOLS = {"circle": "o", "square": "s", "diamond": "D", "cross": "P", "x": "X", "star": "*"}
SYMBOLS |= {"triangle-up": "^", "triangle-down": "v", "triangle-left": "<", "triangle-right": ">"}
SYMBOLS |= {"pentagon": "p", "hexagon": "h", "line-ew": "_", "line-ns": "|", "diamond-tall": "d"}
DASHES = {"dash": (0, (5, 3)), "dot": (0, (1, 2)), "dashdot": (0, (5, 3, 1, 3))}
DASHES |= {"longdash": (0, (9, 4)), "longdashdot": (0, (9, 4, 1, 4))}


def dict_of(value):
    return value if isinstance(value, dict) else {}


def list_of(value):
    return list(value) if isinstance(value, (list, tuple)) else []


def number(value, default):
    found = plots.number_of(value)
    return found if math.isfinite(found) else default


def decoded(value):
    """A figure's JSON with lists in the place of numpy's arrays."""
    if isinstance(value, dict):
        if "bdata" in value and "dtype" in value:
            return array_of(value)
        return {name: decoded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [decoded(one) if isinstance(one, (dict, list)) else one for one in value]
    return value


def array_of(value):
    data = base64.b64decode(value["bdata"])
    code = CODES[str(value["dtype"]).lstrip("<|=")]
    array = memoryview(data).cast(code)
    shape = [int(size) for size in str(value.get("shape") or len(array)).split(",")]
    return memoryview(data).cast(code, shape).tolist() if len(shape) > 1 else array.tolist()


def dash_of(dash):
    return DASHES.get(dash, "-") if isinstance(dash, str) else "-"


def scale_colors(scale):
    """A scale of colors as pairs."""
    pairs = []
    for pair in list_of(scale):
        pair = list_of(pair)
        color = color_of(pair[1]) if len(pair) == 2 else None
        if color is not None:
            pairs.append((min(max(number(pair[0], 0), 0), 1), color))
    pairs.sort(key=lambda pair: pair[0])
    if len(pairs) < 2:
        return list(zip([part / 9 for part in range(10)], PLASMA))
    return [(0.0, pairs[0][1]), *pairs[1:-1], (1.0, pairs[-1][1])]


def group_of(trace):
    return str(
        trace.get("offsetgroup") or trace.get("alignmentgroup_") or trace.get("name") or id(trace)
    )


def title_of(trace):
    title = trace.get("title")
    return dict_of(title).get("text") if isinstance(title, dict) else title


def item(values, at):
    return values[at] if isinstance(values, list) and at < len(values) else None


def counted(trace, name, count):
    """Places that a trace does not list."""
    first, step = number(trace.get(f"{name}0"), 0), number(trace.get(f"d{name}"), 1)
    return [first + step * at for at in range(count)]


def symbol_of(symbol):
    if not isinstance(symbol, str):
        return "o"
    return SYMBOLS.get(symbol.removesuffix("-open").removesuffix("-dot"), "o")


def errors_of(options, values):
    """Lengths below and above each value, or None."""
    options = dict_of(options)
    if options.get("visible") is False or not options:
        return None
    numbers = [number(value, 0) for value in values]
    kind = options.get("type")
    if options.get("array") is not None or kind == "data":
        above = [abs(number(one, 0)) for one in list_of(options.get("array"))]
        below = [abs(number(one, 0)) for one in list_of(options.get("arrayminus"))] or above
    elif kind in ("percent", "constant"):
        size = number(options.get("value"), 10)
        above = [abs(one) * size / 100 if kind == "percent" else size for one in numbers]
        below = above
    else:
        return None
    return (below, above) if len(above) == len(below) == len(values) else None


def texts_of(trace, x, y):
    """What is written at each point."""
    given, template = trace.get("text"), trace.get("texttemplate")
    texts = given if isinstance(given, list) else [given] * len(x)
    texts = texts + [None] * (len(x) - len(texts))
    if isinstance(template, str):
        lies = trace.get("orientation") == "h"
        pairs = zip(x, y, texts)
        return [
            written(template, {"x": a, "y": b, "text": text, "value": a if lies else b})
            for a, b, text in pairs
        ]
    return [None if text is None else formatted(text, "") for text in texts]


def precomputed(trace, names):
    """Boxes whose five numbers are given."""
    if not isinstance(trace.get("q1"), list):
        return None
    keys = {"min": "lowerfence", "first_quartile": "q1", "median": "median"}
    keys |= {"third_quartile": "q3", "max": "upperfence"}
    boxes = []
    for at in range(len(trace["q1"])):
        box = {key: item(trace.get(name), at) for key, name in keys.items()}
        box["min"] = box["first_quartile"] if box["min"] is None else box["min"]
        box["max"] = box["third_quartile"] if box["max"] is None else box["max"]
        boxes.append({key: number(value, 0) for key, value in box.items()} | {"outliers": []})
    return (names or [str(at) for at in range(len(boxes))]), boxes
