"""A small `IPython.display`, for programs that were written for a notebook.

It takes the place of IPython where that is not installed.
"""

import json
import types

import _isolet_displays as displays

VERSION = (9, 0, 0, "")


def install(modules):
    """Says how to make the modules."""
    modules["IPython"] = make_package
    modules["IPython.display"] = make_display


def make_package():
    module = types.ModuleType("IPython", "The part of IPython that displays objects.")
    module.__path__ = []
    module.version_info = VERSION
    module.__version__ = ".".join(map(str, VERSION[:3]))
    module.get_ipython = get_ipython
    module.display = make_display()
    return module


def make_display():
    module = types.ModuleType("IPython.display", "Objects that are displayed in a format.")
    for thing in PUBLIC:
        setattr(module, thing.__name__, thing)
    module.__all__ = [thing.__name__ for thing in PUBLIC]
    return module


def get_ipython():
    """There is no IPython shell here."""
    return None


def clear_output(wait=False):
    """Does nothing: what was displayed stays."""


def update_display(value, *, display_id, **options):
    """Displays the object once more."""
    displays.display(value, **options)


def publish_display_data(data, metadata=None, **options):
    """Displays an object in the formats given."""
    displays.display(data, raw=True)


class DisplayObject:
    """Data with a format. They are given, or read from a file."""

    format = None

    def __init__(self, data=None, url=None, filename=None, metadata=None, **options):
        if data is None and filename is not None:
            with open(filename, "rb") as file:
                data = file.read()
        self.data, self.url, self.filename, self.metadata = data, url, filename, metadata

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {} if self.data is None else {self.format: self.data}


class TextDisplayObject(DisplayObject):
    pass


class Pretty(TextDisplayObject):
    format = "text/plain"


class HTML(TextDisplayObject):
    format = "text/html"

    def _repr_html_(self):
        return self.data


class Markdown(TextDisplayObject):
    format = "text/markdown"


class Latex(TextDisplayObject):
    format = "text/latex"


class Math(Latex):
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {self.format: f"$\\displaystyle {self.data.strip('$')}$"}


class SVG(DisplayObject):
    format = "image/svg+xml"


class JSON(DisplayObject):
    format = "application/json"

    def _repr_mimebundle_(self, include=None, exclude=None):
        data = self.data
        return {self.format: json.loads(data) if isinstance(data, (str, bytes)) else data}


class Javascript(TextDisplayObject):
    format = "application/javascript"


class Code(TextDisplayObject):
    format = "text/plain"


class Image(DisplayObject):
    """A picture: its bytes, the name of a file, or an address."""

    def __init__(self, data=None, url=None, filename=None, format=None, embed=None, **options):
        if isinstance(data, str):
            url, filename, data = (
                (data, None, None) if data.startswith(("http:", "https:")) else (None, data, None)
            )
        super().__init__(data, url, filename)
        self.format = f"image/{format.lower().replace('jpg', 'jpeg')}" if format else None

    def _repr_mimebundle_(self, include=None, exclude=None):
        if self.data is None:
            return {"text/html": f'<img src="{self.url}"/>'}
        return {self.format or picture_format(self.data): self.data}


class IFrame:
    """A page within the page."""

    def __init__(self, src, width, height, **options):
        self.src, self.width, self.height = src, width, height

    def _repr_html_(self):
        return f'<iframe src="{self.src}" width="{self.width}" height="{self.height}"></iframe>'


def picture_format(data):
    """The format that the first bytes of a picture say."""
    if data[:3] == b"\xff\xd8\xff":
        return "image/jpeg"
    if data[:4] == b"GIF8":
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return "image/svg+xml" if data.lstrip()[:1] == b"<" else "image/png"


PUBLIC = (
    *(displays.display, clear_output, update_display, publish_display_data),
    *(DisplayObject, TextDisplayObject, Pretty, HTML, Markdown, Latex, Math, SVG, JSON),
    *(Javascript, Code, Image, IFrame),
)
