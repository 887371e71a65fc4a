"""What runs and files of `isolet.compat.e2b` return, and its exceptions."""

from __future__ import annotations

import base64
import contextlib
import json as _json
import re
from dataclasses import dataclass, field
from typing import Any, cast

from ..execution import Display

_FIELDS = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "text/latex": "latex",
    "application/json": "json",
    "application/javascript": "javascript",
    "e2b/data": "data",
    "e2b/chart": "chart",
}
# The data of a chart, which has nearly the shape of E2B's.
_CHART = "application/vnd.isolet.chart.v1+json"
_TABLE = "application/vnd.isolet.table.v1+json"
_NAMES = {
    "line": ("label", "Line {}"),
    "scatter": ("label", "_child{}"),
    "bar": ("group", "Group 0"),
}
_UNIT = re.compile(r" \((.*?)\)|\[(.*?)\]")
_FORMATS = tuple(_FIELDS.values())


class SandboxException(Exception):
    """The base class of these exceptions."""


class TimeoutException(SandboxException):
    """A run took too long."""


class InvalidArgumentException(SandboxException):
    """An argument is invalid."""


class NotFoundException(SandboxException):
    """There is no such sandbox, context or file."""


class FileNotFoundException(NotFoundException):
    """There is no such file."""


@dataclass
class CommandResult:
    """What a command did."""

    stderr: str
    """What it printed to standard error."""
    stdout: str
    """What it printed to standard output."""
    exit_code: int
    """Its exit status; 0 is success."""
    error: str | None = None
    """Why the shell has ended, if it was not by the command's own status."""


@dataclass
class CommandExitException(SandboxException, CommandResult):
    """A command has ended with a status other than 0."""

    def __str__(self) -> str:
        return f"the command ended with the status {self.exit_code}: {self.error or self.stderr}"


@dataclass
class OutputMessage:
    """A piece of output."""

    line: str
    """The text, which may be more or less than a line."""
    timestamp: int
    """Nanoseconds since 1970."""
    error: bool = False
    """Whether it is of the standard error."""

    def __str__(self) -> str:
        return self.line


@dataclass
class ExecutionError:
    """What the code has raised, or why it was ended."""

    name: str
    """The class, such as `ValueError`; `SystemExit`; or `ExecutionTerminated`."""
    value: str
    """The message."""
    traceback: str
    """The traceback, or the message if there is none."""

    def to_json(self) -> str:
        """Returns it as JSON."""
        return _json.dumps({"name": self.name, "value": self.value, "traceback": self.traceback})


@dataclass(repr=False)
class Result:
    """The value of a cell, or what it has displayed, in one or several formats.

    A format that there is not is `None`. `png`, `jpeg` and `pdf` are base64; `text`, `html`,
    `markdown`, `svg`, `latex` and `javascript` are texts; `json`, `data` and `chart` are objects.
    """

    text: str | None = None
    html: str | None = None
    markdown: str | None = None
    svg: str | None = None
    png: str | None = None
    jpeg: str | None = None
    pdf: str | None = None
    latex: str | None = None
    json: Any = None
    javascript: str | None = None
    data: dict[str, Any] | None = None
    chart: Any = None
    is_main_result: bool = False
    """Whether it is the value of the last expression."""
    extra: dict[str, Any] | None = None
    """Further formats, by MIME type."""

    def formats(self) -> list[str]:
        """Returns the names of the formats that there are."""
        return [name for name in _FORMATS if getattr(self, name)] + list(self.extra or ())

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def __repr__(self) -> str:
        return f"Result({self.text or 'Formats: ' + ', '.join(self.formats())})"

    __str__ = __repr__

    def _repr_html_(self) -> str | None:
        return self.html

    def _repr_markdown_(self) -> str | None:
        return self.markdown

    def _repr_svg_(self) -> str | None:
        return self.svg

    def _repr_png_(self) -> str | None:
        return self.png

    def _repr_jpeg_(self) -> str | None:
        return self.jpeg

    def _repr_latex_(self) -> str | None:
        return self.latex


@dataclass
class Logs:
    """What a run wrote, in pieces: `stdout` and `stderr`."""

    stdout: list[str] = field(default_factory=list[str])
    stderr: list[str] = field(default_factory=list[str])

    def to_json(self) -> str:
        """Returns it as JSON."""
        return _json.dumps({"stdout": self.stdout, "stderr": self.stderr})


@dataclass
class Execution:
    """What a run did."""

    results: list[Result] = field(default_factory=list[Result])
    """What it displayed, and its value, which has `is_main_result`."""
    logs: Logs = field(default_factory=Logs)
    """What it wrote."""
    error: ExecutionError | None = None
    """What it raised, or `None`."""
    execution_count: int | None = None
    """The number of the run in its interpreter, from 1."""

    @property
    def text(self) -> str | None:
        """What the value of the last expression shows: a text itself, or else a `repr`."""
        return next((each.text for each in self.results if each.is_main_result), None)

    def to_json(self) -> str:
        """Returns it as JSON. Logs and error are JSON in a text, as with E2B."""
        results: list[dict[str, Any]] = []
        for result in self.results:
            fields: dict[str, Any] = {
                name: result[name] for name in result.formats() if name in _FORMATS
            }
            results.append({**fields, **(result.extra or {}), "text": result.text})
        return _json.dumps(
            {
                "results": results,
                "logs": self.logs.to_json(),
                "error": self.error.to_json() if self.error else None,
            }
        )


@dataclass
class WriteInfo:
    """A file that was written."""

    name: str
    """Its name, without the directory."""
    type: str
    """`file` or `dir`."""
    path: str
    """Its absolute path."""


@dataclass
class EntryInfo(WriteInfo):
    """An entry of a directory."""

    size: int = 0
    """In bytes."""


def _as_e2b_has_it(chart: Any) -> Any:
    """Returns a chart with the units of its axes, which their labels have in brackets, and with
    names for what has none. Axes of bars are called by what they say, whichever way the bars go.
    """
    if not isinstance(chart, dict):
        return chart
    fields = cast("dict[str, Any]", chart)
    elements: Any = fields.get("elements")
    if isinstance(elements, list):
        kind = fields.get("type")
        for number, one in enumerate(cast("list[Any]", elements)):
            if kind == "superchart":
                elements[number] = _as_e2b_has_it(one)
            elif isinstance(one, dict) and kind in _NAMES:
                field, name = _NAMES[cast("str", kind)]
                element = cast("dict[str, Any]", one)
                if element.get(field, "") is None:
                    element[field] = name.format(number)
    if fields.pop("orientation", None) == "horizontal":
        x, y = fields.get("x_label"), fields.get("y_label")
        fields.update(x_label=y, y_label=x)
    for axis in ("x", "y"):
        if f"{axis}_label" in fields:
            found = _UNIT.search(str(fields[f"{axis}_label"] or ""))
            fields[f"{axis}_unit"] = (found[1] or found[2]) if found else None
    return fields


def result_of(display: Display, text: str | None) -> Result:
    """Returns a display as a result, whose text is `text` or its own."""
    result = Result(is_main_result=display.is_result)
    extra: dict[str, Any] = {}
    for mime, data in display.data.items():
        shown: Any = base64.b64encode(data).decode() if isinstance(data, bytes) else data
        name = _FIELDS.get(mime)
        if name is None:
            extra[mime] = shown
            continue
        if name in ("json", "data", "chart") and isinstance(shown, str):
            try:
                shown = _json.loads(shown)
            except ValueError:
                continue
        setattr(result, name, shown)
    if _TABLE in extra:
        with contextlib.suppress(ValueError):
            result.data = _json.loads(extra.pop(_TABLE))
    if _CHART in extra:
        with contextlib.suppress(ValueError):
            result.chart = _as_e2b_has_it(_json.loads(extra[_CHART]))
    if result.text and len(result.text) > 1 and result.text[0] == result.text[-1] == "'":
        # The text of a text has no quotes.
        result.text = result.text[1:-1]
    result.text = text or result.text
    result.extra = extra or None
    return result
