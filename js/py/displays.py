"""Objects as people look at them: MIME bundles, for `display()` and for the last expression."""

import base64
import binascii
import contextlib
import json
import os
import sys
from marshal import dumps  # the guest may put others in their places

from _isolet_errors import format_traceback
from _isolet_values import capped_repr, encodable, exact

MARSHAL_VERSION = 2
BYTES_HEADER = bytes.__basicsize__ - 1
MAX_PLAIN = 65_536  # characters
PLAIN = "text/plain"

# The formats that objects offer by methods, as IPython knows them.
METHODS = {
    "text/html": "_repr_html_",
    "text/markdown": "_repr_markdown_",
    "image/svg+xml": "_repr_svg_",
    "image/png": "_repr_png_",
    "image/jpeg": "_repr_jpeg_",
    "application/pdf": "_repr_pdf_",
    "text/latex": "_repr_latex_",
    "application/json": "_repr_json_",
    "application/javascript": "_repr_javascript_",
}
# What is shown as its repr and has no other form; most results of cells are of these types.
SIMPLE = {type(None), bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset}

bridge = None
kept = None  # a list that takes what is displayed
publish = None  # in a kernel of Jupyter: what publishes a display that may be changed
# By the name of a module: what makes formats of values when it is loaded, if they are of its types.
SPECIAL = {}
ADDITIONS = []  # what makes further formats of any value


def attach(host_bridge):
    """Connects a restored interpreter to its host."""
    global bridge
    bridge = host_bridge


def display(
    *objects, raw=False, include=None, exclude=None, metadata=None, display_id=None, update=False,
    **options,
):  # fmt: skip
    """Display objects: pictures, tables, pages, formulas.

    An object is displayed in the formats that it has methods for, as `_repr_html_`, `_repr_png_` or
    `_repr_mimebundle_`, and as its repr. With `raw=True` each object is a dict of formats:
    `{"text/html": "<b>hello</b>"}`. `include` and `exclude` are names of formats. With a
    `display_id`, or True, it returns a handle that displays more.
    """
    has_handle = display_id is not None and display_id is not False
    handle = DisplayHandle(None if display_id is True else display_id) if has_handle else None
    for value in objects:
        if raw:
            formats = {str(name): data for name, data in value.items()}
        else:
            if shows_itself(value):
                continue
            formats = formats_of(value, include, exclude)
            formats[PLAIN] = plain_text(value, formats)
        if handle is None or publish is None or kept is not None:
            send(formats, include, exclude)
        else:
            publish(crossing(formats, include, exclude), metadata, handle.display_id, update)
    return handle


class DisplayHandle:
    """A place in the output. In a kernel of Jupyter what it updates takes the place of what it has
    displayed before; elsewhere it comes after that.
    """

    def __init__(self, display_id=None):
        self.display_id = display_id or os.urandom(16).hex()

    def display(self, value, **options):
        display(value, display_id=self.display_id, **options)

    def update(self, value, **options):
        display(value, display_id=self.display_id, update=True, **options)

    def __repr__(self):
        return f"<DisplayHandle display_id={self.display_id}>"


def result(value):
    """Displays a last expression's value if there is more to see than its repr; whether it did."""
    return attempt(display_result, value)


def display_result(value):
    if shows_itself(value):
        return True
    formats = formats_of(value)
    if formats:
        formats[PLAIN] = plain_text(value, formats)
        send(formats, is_result=True)
    return bool(formats)


def shows_itself(value):
    """Has an object display itself, if it knows how to."""
    if any(name in sys.modules and special(value) for name, special in SPECIAL.items()):
        return False
    method = method_of(value, "_ipython_display_")
    if method is None:
        return False
    try:
        method(value)
    except NotImplementedError:
        return False
    return True


def method_of(value, name):
    """A method of the object's class. An object may answer to any name, a class does not."""
    kind = type(value)
    if issubclass(kind, type):
        return None
    try:
        method = getattr(kind, name, None)
    except Exception:  # as IPython looks it up
        return None
    return method if callable(method) else None


def formats_of(value, include=None, exclude=None):
    """What an object looks like, without its repr."""
    for name, special in SPECIAL.items():
        if name in sys.modules:
            found = special(value)
            if found:
                return found()
    formats = {}
    bundle = method_of(value, "_repr_mimebundle_")
    if bundle is not None:
        found = attempt(bundle, value, include=include, exclude=exclude)
        found = found[0] if isinstance(found, tuple) and found else found
        if isinstance(found, dict):
            formats.update(found)
    for name, method in METHODS.items():
        method = method_of(value, method)
        if method is None or name in formats or name == "image/jpeg" and "image/png" in formats:
            continue
        data = attempt(method, value)
        data = data[0] if isinstance(data, tuple) and data else data
        if data is not None:
            formats[name] = data
    for more in ADDITIONS:
        formats.update(attempt(more, value) or {})
    return formats


def attempt(method, *arguments, **named):
    """What a method of the object returns. If it fails, the format is missing, and the program's
    standard error says why.
    """
    try:
        return method(*arguments, **named)
    except NotImplementedError:
        return None
    except Exception as error:
        print(format_traceback(error), end="", file=sys.stderr)
        return None


def plain_text(value, formats):
    text = formats.get(PLAIN)
    return text if isinstance(text, str) else capped_repr(value, MAX_PLAIN)


@contextlib.contextmanager
def kept_in(outputs):
    """Adds what is displayed meanwhile to a list instead."""
    global kept
    kept, before = outputs, kept
    try:
        yield
    finally:
        kept = before


def send(formats, include=None, exclude=None, is_result=False):
    if kept is not None:
        kept.append(formats)
        return
    crossing_formats = crossing(formats, include, exclude)
    if crossing_formats:
        data = dumps([is_result, crossing_formats], MARSHAL_VERSION)
        bridge.display(id(data) + BYTES_HEADER, len(data))


def crossing(formats, include=None, exclude=None):
    """The formats as the host takes them."""
    found = {}
    for name, data in formats.items():
        if not isinstance(name, str):
            continue
        name = encodable(name)
        wanted = (include is None or name in include) and (exclude is None or name not in exclude)
        data = attempt(crossing_data, name, data) if wanted else None
        if data is not None:
            found[name] = data
    return found


def crossing_data(name, data):
    """The data of one format as a str or bytes; None if they are neither."""
    if isinstance(data, (bytes, bytearray, memoryview)):
        data = bytes(data)
        if is_binary(name):
            return data
        return data.decode("utf-8", "replace")
    if isinstance(data, str):
        if not is_binary(name):
            return encodable(exact(data))
        try:
            return base64.b64decode(data, validate=False)
        except (ValueError, binascii.Error):
            return None
    if isinstance(data, (dict, list, tuple, int, float)):
        return encodable(json.dumps(data, default=str))
    return None


def is_binary(name):
    """Whether a format is of bytes, which objects may give in base64."""
    if name.endswith(("+xml", "+json")):
        return False
    return name.startswith(("image/", "audio/", "video/")) or name == "application/pdf"
