"""The keywords of runs: `RunOptions`, `StreamOptions`, `OutputCallbacks`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

from ._values import shown, to_plain
from .execution import Display, Output, Syntax

Inputs = Mapping[str, Any]


class StreamOptions(TypedDict, total=False):
    """The keywords of `Session.stream`: `inputs`, `timeout`, `stdin`, `argv`, `name`,
    `working_directory`, `program`, `keep_variables`, `allow_return`, `syntax`, `table_data` and
    `chart_pictures`, as `RunOptions` describes them.
    """

    inputs: Inputs | None
    timeout: float | None
    stdin: str | bytes | None
    argv: Sequence[str] | None
    name: str | None
    working_directory: str | None
    program: bool
    keep_variables: bool
    allow_return: bool
    syntax: Syntax
    table_data: bool
    chart_pictures: bool


class OutputCallbacks(TypedDict, total=False):
    """The keywords of `Session.go_on`.

    Args:
        on_stdout: called with each piece of the standard output as it is written.
        on_stderr: the same for the standard error.
        on_display: called with each picture, table and other rich result.
    """

    on_stdout: Callable[[str], object] | None
    on_stderr: Callable[[str], object] | None
    on_display: Callable[[Display], object] | None


class RunOptions(StreamOptions, OutputCallbacks, total=False):
    """The keywords of `Session.run` and `Session.eval`. Another one is a `TypeError`.

    Args:
        inputs: variables that are set before.
        timeout: the most seconds that the run may take, at most the limit `run_time`, without
            those in tools. Past it the guest gets `KeyboardInterrupt`, and the result has the
            status `timeout`, and the output so far.
        stdin: the standard input.
        argv: `sys.argv` after the name of the program. Without it, `sys.argv` stays as it is;
            a program gets none.
        name: the name of the file in tracebacks, `<cell>` by default.
        working_directory: the directory of the guest in which it runs, and later code too. A
            program of the shell has it for itself. Without it, the directory stays as it is.
        program: whether to run it as `python FILE` does, without a value. At its end its
            variables are deleted and its files closed.
        keep_variables: whether a program's variables stay in the session, which `get` reads
            then; its files are only flushed. Those of other code stay anyway.
        allow_return: whether `return` at the top level ends the code, with its value.
        syntax: how the code is read. `python -c` leaves out the indentation that all lines
            share, as `"command"` does. With `"ipython"` it is a cell of a notebook: it may be
            indented as a whole and have IPython's commands, such as `%timeit`. With `"shell"` it
            is a script for the session's shell, as for `Session.sh`.
        table_data: whether displays of pandas' tables also have their data, by column, as
            `application/vnd.isolet.table.v1+json`.
        chart_pictures: whether displays of charts of plotly and altair also have a picture,
            `image/png`, which needs the packages `isolet-charts` and matplotlib.
        on_stdout: called with each piece of the standard output as it is written.
        on_stderr: the same for the standard error.
        on_display: called with each picture, table and other rich result.
    """


_STREAM = tuple(StreamOptions.__annotations__)
_CALLBACKS = tuple(OutputCallbacks.__annotations__)
_FLAGS = ("program", "keep_variables", "allow_return", "table_data", "chart_pictures")


def of_run(options: RunOptions) -> dict[str, Any]:
    """Returns what the server gets of the options of `Session.run`, without the inputs.

    Raises:
        TypeError: there is no such option.
    """
    return _to_wire(options, "run", (*_STREAM, *_CALLBACKS)) if options else {}


def of_stream(options: StreamOptions) -> dict[str, Any]:
    """Returns what the server gets of the options of `Session.stream`, without the inputs.

    Raises:
        TypeError: there is no such option.
    """
    return _to_wire(options, "stream", _STREAM)


def of_go_on(callbacks: OutputCallbacks) -> dict[str, Any]:
    """Returns what the server gets of the options of `Session.go_on`.

    Raises:
        TypeError: there is no such option.
    """
    _check(callbacks, "go_on", _CALLBACKS)
    return {"stream": True} if has_callbacks(callbacks) else {}


def has_callbacks(options: OutputCallbacks) -> bool:
    """Returns whether the program wants to see output or displays while the code runs."""
    return any(options.get(name) is not None for name in _CALLBACKS)


def tell(found: Output | Display, callbacks: OutputCallbacks) -> None:
    """Calls the callback for a piece of output or a display, if there is one."""
    if isinstance(found, Display):
        on_display = callbacks.get("on_display")
        if on_display is not None:
            on_display(found)
        return
    is_error = found.stream == "stderr"
    on_text = callbacks.get("on_stderr") if is_error else callbacks.get("on_stdout")
    if on_text is not None:
        on_text(found.text)


def _check(options: Mapping[str, object], method: str, known: tuple[str, ...]) -> None:
    for given in options:
        if given not in known:
            raise TypeError(f"`{method}` has no option {given!r}; it has {', '.join(known)}")


def _to_wire(options: StreamOptions, method: str, known: tuple[str, ...]) -> dict[str, Any]:
    _check(options, method, known)
    wire: dict[str, Any] = {}
    timeout, stdin, argv = options.get("timeout"), options.get("stdin"), options.get("argv")
    name, syntax = options.get("name"), options.get("syntax", "python")
    directory = options.get("working_directory")
    if timeout is not None:
        wire["timeout"] = float(timeout)
    if stdin:
        wire["stdin"] = to_plain(stdin, "stdin")
    if argv is not None:
        wire["argv"] = to_plain(list(argv), "argv")
    if name is not None:
        wire["name"] = shown(name)
    if directory is not None:
        wire["working_directory"] = shown(directory)
    if syntax != "python":
        wire["syntax"] = shown(syntax)
    for flag in _FLAGS:
        if options.get(flag):
            wire[flag] = True
    return wire
