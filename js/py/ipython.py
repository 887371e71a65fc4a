"""A small IPython, for programs that were written for a notebook.

It takes the place of IPython where that is not installed.
"""

import base64
import html
import json
import mimetypes
import os
import types

import _isolet_capture as capture
import _isolet_displays as displays
import _isolet_interactive_shell as shells

MAX_LISTED = 1000  # files that a list of links has


def install(modules):
    """Says how to make the modules."""
    for name, (doc, things) in MODULES.items():
        modules[name] = lambda name=name, doc=doc, things=things: make(name, doc, things)


def make(name, doc, things):
    module = types.ModuleType(name, doc)
    if any(other.startswith(f"{name}.") for other in MODULES):
        module.__path__ = []
    if name == "IPython":
        module.version_info = shells.VERSION
        module.__version__ = ".".join(map(str, shells.VERSION[:3]))
    for thing in things:
        setattr(module, thing.__name__, thing)
    module.__all__ = [thing.__name__ for thing in things]
    return module


def get_ipython():
    """The shell, if cells may have commands of IPython; otherwise None."""
    return shells.shell if shells.is_active() else None


def clear_output(wait=False):
    """Clears what the cell has displayed, in a kernel of Jupyter; elsewhere it stays."""
    shells.shell.display_pub.clear_output(wait)


def update_display(value, *, display_id, **options):
    """Displays the object in the place of what was displayed with this id, in a kernel of Jupyter;
    elsewhere once more.
    """
    displays.display(value, display_id=display_id, **(options | {"update": True}))


def publish_display_data(data, metadata=None, **options):
    """Displays an object in the formats given."""
    shells.shell.display_pub.publish(data, metadata, **options)


def displayed_as(format):
    def show(*objects, raw=False, metadata=None, **options):
        """Displays objects in one format only."""
        for value in objects:
            if raw:
                displays.display({format: value}, raw=True)
            else:
                displays.display(value, include=[format, displays.PLAIN])

    show.__name__ = show.__qualname__ = f"display_{NAMES.get(format, format.split('/')[1])}"
    return show


NAMES = {
    "text/plain": "pretty",
    "image/svg+xml": "svg",
    "application/pdf": "pdf",
}
DISPLAY_AS = tuple(map(displayed_as, (displays.PLAIN, *displays.METHODS)))


def set_matplotlib_formats(*formats, **options):
    """Does nothing: figures are PNG."""


def set_matplotlib_close(close=True):
    """Does nothing: figures are closed when a cell ends."""


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

    def __repr__(self):
        return f"<{type(self).__module__}.{type(self).__qualname__} object>"


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

    def __init__(self, src, width, height, extras=None, **options):
        self.src, self.width, self.height, self.params = src, width, height, options

    def _repr_html_(self):
        from urllib.parse import urlencode

        source = f"{self.src}?{urlencode(self.params)}" if self.params else self.src
        return (
            f'<iframe width="{self.width}" height="{self.height}" src="{source}" '
            'frameborder="0" allowfullscreen></iframe>'
        )


class YouTubeVideo(IFrame):
    """A video, which only a reader with a network sees."""

    def __init__(self, id, width=400, height=300, **options):
        super().__init__(f"https://www.youtube.com/embed/{id}", width, height, **options)
        self.id = id


class VimeoVideo(IFrame):
    """A video, which only a reader with a network sees."""

    def __init__(self, id, width=400, height=300, **options):
        super().__init__(f"https://player.vimeo.com/video/{id}", width, height, **options)
        self.id = id


class ScribdDocument(IFrame):
    """A document, which only a reader with a network sees."""

    def __init__(self, id, width=400, height=300, **options):
        super().__init__(f"https://www.scribd.com/embeds/{id}/content", width, height, **options)
        self.id = id


class Video(DisplayObject):
    """A film: its bytes, the name of a file, or an address."""

    def __init__(
        self, data=None, url=None, filename=None, embed=False, mimetype=None, width=None,
        height=None, html_attributes="controls",
    ):  # fmt: skip
        if isinstance(data, str):
            is_address = data.startswith(("http:", "https:"))
            url, filename, data = (data, None, None) if is_address else (None, data, None)
        name = filename or url or ""
        super().__init__(data, url, filename if embed else None)
        self.filename = filename
        self.mimetype = mimetype or mimetypes.guess_type(name)[0] or "video/mp4"
        sizes = (("width", width), ("height", height))
        self.attributes = " ".join(
            [html_attributes, *(f'{name}="{size}"' for name, size in sizes if size)]
        )

    def _repr_mimebundle_(self, include=None, exclude=None):
        source = self.url or self.filename
        if self.data is not None:
            source = address_of(self.mimetype, self.data)
        return {"text/html": f'<video src="{source}" {self.attributes}></video>'}


class Audio(DisplayObject):
    """A sound: its samples and their rate, the bytes or the name of a file, or an address."""

    def __init__(
        self, data=None, filename=None, url=None, embed=None, rate=None, autoplay=False,
        normalize=True, *, element_id=None,
    ):  # fmt: skip
        if filename is None and url is None and data is None:
            raise ValueError("No audio data found. Expecting filename, url, or data.")
        if isinstance(data, str):
            is_address = data.startswith(("http:", "https:"))
            url, filename, data = (data, None, None) if is_address else (None, data, None)
        super().__init__(data, url, filename)
        self.autoplay, self.mimetype = autoplay, "audio/wav"
        if filename is not None or url is not None:
            self.mimetype = mimetypes.guess_type(filename or url)[0] or self.mimetype
        elif not isinstance(data, bytes):
            if rate is None:
                raise ValueError("rate must be specified when data is a numpy array or list.")
            self.data = wave_of(data, rate, normalize)

    def _repr_mimebundle_(self, include=None, exclude=None):
        source = self.url if self.data is None else address_of(self.mimetype, self.data)
        autoplay = 'autoplay="autoplay"' if self.autoplay else ""
        return {
            "text/html": f'<audio controls="controls" {autoplay}>'
            f'<source src="{source}" type="{self.mimetype}" /></audio>'
        }


def address_of(format, data):
    data = data if isinstance(data, str) else base64.b64encode(data).decode()
    return f"data:{format};base64,{data}"


def wave_of(samples, rate, normalize):
    """The samples of one channel or of several as a file of sound."""
    import array
    import io
    import wave

    channels = [list(one) for one in samples] if is_nested(samples) else [list(samples)]
    largest = max((abs(each) for one in channels for each in one), default=0)
    if not normalize and largest > 1:
        raise ValueError("Audio data must be between -1 and 1 when normalize=False.")
    scale = 32767 / (largest or 1 if normalize else 1)
    frames = array.array("h", (int(each * scale) for frame in zip(*channels) for each in frame))
    written = io.BytesIO()
    with wave.open(written, "wb") as file:
        file.setnchannels(len(channels))
        file.setsampwidth(2)
        file.setframerate(int(rate))
        file.writeframes(frames.tobytes())
    return written.getvalue()


def is_nested(samples):
    return len(samples) > 0 and hasattr(samples[0], "__len__")


class FileLink:
    """The name of a file, with a link to it."""

    def __init__(self, path, url_prefix="", result_html_prefix="", result_html_suffix="<br>"):
        if os.path.isdir(path):
            raise ValueError(
                "Cannot display a directory using FileLink. Use FileLinks to display "
                f"{str(path)!r}."
            )
        self.path, self.url_prefix = str(path), url_prefix
        self.result_html_prefix, self.result_html_suffix = result_html_prefix, result_html_suffix

    def _repr_html_(self):
        if not os.path.exists(self.path):
            return (
                f"Path (<tt>{html.escape(self.path)}</tt>) doesn't exist. It may still be in the "
                "process of being generated, or you may have the incorrect path."
            )
        link = html.escape(f"{self.url_prefix}{self.path}")
        shown = f"<a href='{link}' target='_blank'>{html.escape(self.path)}</a>"
        return f"{self.result_html_prefix}{shown}{self.result_html_suffix}"

    def __repr__(self):
        return os.path.abspath(self.path)


class FileLinks:
    """The names of the files in a directory, with links to them."""

    def __init__(self, path, url_prefix="", included_suffixes=None, recursive=True, **options):
        if os.path.isfile(path):
            raise ValueError(
                f"Cannot display a file using FileLinks. Use FileLink to display {str(path)!r}."
            )
        self.path, self.url_prefix = str(path), url_prefix
        self.included_suffixes, self.recursive = included_suffixes, recursive

    def files(self):
        found = []
        for place, directories, names in os.walk(self.path):
            directories.sort()
            if not self.recursive:
                directories.clear()
            for name in sorted(names):
                if not self.included_suffixes or name.endswith(tuple(self.included_suffixes)):
                    found.append(os.path.join(place, name))
            if len(found) >= MAX_LISTED:
                break
        return found[:MAX_LISTED]

    def _repr_html_(self):
        return "\n".join(FileLink(name, self.url_prefix)._repr_html_() for name in self.files())

    def __repr__(self):
        return "\n".join(self.files())


class GeoJSON(JSON):
    """Places and borders, for readers that show them on a map."""

    format = "application/geo+json"

    def __init__(self, *arguments, layer_options=None, url_template=None, **options):
        super().__init__(*arguments, **options)

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {displays.PLAIN: repr(self)} | super()._repr_mimebundle_(include, exclude)


class ProgressBar:
    """How far something is: the bar is displayed anew with each step."""

    def __init__(self, total):
        self.total, self._progress, self.html_width, self.text_width = total, 0, "60ex", 60
        self.display_id = os.urandom(16).hex()

    @property
    def progress(self):
        return self._progress

    @progress.setter
    def progress(self, value):
        self._progress = value
        self.update()

    def __repr__(self):
        done = self._progress / self.total if self.total else 1
        filled = "=" * int(done * self.text_width)
        return f"[{filled.ljust(self.text_width)}] {self._progress}/{self.total}"

    def _repr_html_(self):
        return (
            f"<progress style='width:{self.html_width}' max='{self.total}' "
            f"value='{self._progress}'></progress>"
        )

    def display(self):
        displays.display(self, display_id=self.display_id)

    def update(self):
        displays.display(self, display_id=self.display_id, update=True)

    def __iter__(self):
        self.display()
        self._progress = -1
        return self

    def __next__(self):
        self.progress += 1
        if self.progress < self.total:
            return self.progress
        raise StopIteration


def picture_format(data):
    """The format that the first bytes of a picture say."""
    if data[:3] == b"\xff\xd8\xff":
        return "image/jpeg"
    if data[:4] == b"GIF8":
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return "image/svg+xml" if data.lstrip()[:1] == b"<" else "image/png"


def pretty(value, *arguments, **options):
    """The text of a value, over several lines if it is long."""
    import pprint

    return pprint.pformat(value)


def pprint(value, *arguments, **options):
    """Prints a value, over several lines if it is long."""
    print(pretty(value))


def marked(kind):
    """Makes the decorator of a method that is a command."""

    def decorate(given=None):
        def made(function, name=None):
            kinds = ("line", "cell") if kind == "line_cell" else (kind,)
            known = getattr(function, "magic_names", [])
            function.magic_names = known + [(one, name or function.__name__) for one in kinds]
            return function

        if isinstance(given, str):
            return lambda function: made(function, given)
        return made(given) if given is not None else made

    decorate.__name__ = f"{kind}_magic"
    return decorate


def registered(kind):
    """Makes the decorator of a function that becomes a command."""

    def decorate(given):
        def made(function, name=None):
            shells.shell.register_magic_function(function, kind, name)
            return function

        return made(given) if callable(given) else lambda function: made(function, given)

    decorate.__name__ = f"register_{kind}_magic"
    return decorate


def magics_class(kind):
    """Marks a class of commands."""
    return kind


def no_var_expand(function):
    """Keeps values out of the text of a command."""
    function.has_own_text = True
    return function


def needs_local_scope(function):
    """Gives a command the variables of its caller."""
    function.needs_local_scope = True
    return function


class Magics:
    """Commands of an extension, which are methods."""

    def __init__(self, shell=None, **options):
        self.shell = shell or shells.shell


MARKS = tuple(map(marked, ("line", "cell", "line_cell")))
REGISTERS = tuple(map(registered, ("line", "cell", "line_cell")))
SHELL = (shells.InteractiveShell,)
DISPLAY = (
    *(displays.display, displays.DisplayHandle, clear_output, update_display),
    *(publish_display_data, *DISPLAY_AS),
    *(DisplayObject, TextDisplayObject, Pretty, HTML, Markdown, Latex, Math, SVG, JSON, GeoJSON),
    *(Javascript, Code, Image, Video, Audio, IFrame, YouTubeVideo, VimeoVideo, ScribdDocument),
    *(FileLink, FileLinks, ProgressBar, set_matplotlib_formats, set_matplotlib_close),
)
MAGIC = (*MARKS, *REGISTERS, magics_class, no_var_expand, needs_local_scope, Magics)
for thing in DISPLAY:
    thing.__module__ = "IPython.core.display"
FORMATS = (set_matplotlib_formats, set_matplotlib_close)
OUTPUT = (capture.capture_output, capture.CapturedIO, capture.RichOutput)
MODULES = {
    "IPython": ("The part of IPython that cells use.", (get_ipython, displays.display, *SHELL)),
    "IPython.display": ("Objects that are displayed in a format.", DISPLAY),
    "IPython.core": ("", ()),
    "IPython.core.display": ("Objects that are displayed in a format.", DISPLAY),
    "IPython.core.display_functions": ("Functions that display.", DISPLAY),
    "IPython.core.error": ("Errors of commands.", (shells.UsageError,)),
    "IPython.core.getipython": ("", (get_ipython,)),
    "IPython.core.interactiveshell": ("The shell.", SHELL),
    "IPython.core.magic": ("Commands of extensions.", MAGIC),
    "IPython.core.pylabtools": ("", FORMATS),
    "IPython.lib": ("", ()),
    "IPython.lib.display": ("Objects that are displayed in a format.", DISPLAY),
    "IPython.lib.pretty": ("Texts of values.", (pretty, pprint)),
    "IPython.utils": ("", ()),
    "IPython.utils.capture": ("Output that is kept.", OUTPUT),
    "IPython.utils.io": ("Output that is kept.", OUTPUT),
    "matplotlib_inline": ("", ()),
    "matplotlib_inline.backend_inline": ("", FORMATS),
}
