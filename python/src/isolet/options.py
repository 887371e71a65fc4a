"""The keywords of runs: `RunOptions`, `StreamOptions`, `OutputCallbacks`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, cast, get_args

from ._shapes import (
    Shape,
    argument,
    callback,
    flag,
    list_of,
    one_of,
    optional,
    seconds,
    text,
    text_or_bytes,
    variables,
)
from ._values import shown, to_plain
from .execution import Display, Output, Syntax
from .policy import Policy

Inputs = Mapping[str, Any]


class StreamOptions(TypedDict, total=False):
    """The keywords of `Session.stream`. Another one is a `TypeError`.

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


class FreshRun(RunOptions, Policy, total=False):
    """The keywords of `isolet.run`: those of `RunOptions` and of `Policy`."""


_CALLBACKS = tuple(OutputCallbacks.__annotations__)
_FLAGS = ("program", "keep_variables", "allow_return", "table_data", "chart_pictures")


STREAM: dict[str, Shape] = {
    "inputs": optional(variables),
    "timeout": optional(seconds),
    "stdin": optional(text_or_bytes),
    "argv": optional(list_of(argument, "strings", "'--help'")),
    "name": optional(text),
    "working_directory": optional(argument),
    **dict.fromkeys(_FLAGS, optional(flag)),
    "syntax": optional(one_of(*get_args(Syntax))),
}
"""What each keyword of `StreamOptions` has to be."""

DEFAULTS: dict[str, Any] = {**dict.fromkeys(_FLAGS, False), "syntax": "python"}
"""What signatures show as the defaults of those that are not `None`."""

CALLBACKS: dict[str, Shape] = dict.fromkeys(_CALLBACKS, optional(callback))
"""The same of `OutputCallbacks`."""

RUN: dict[str, Shape] = {**STREAM, **CALLBACKS}
"""The same of `RunOptions`."""


def split(options: FreshRun, method: str) -> tuple[RunOptions, Policy]:
    """Returns the keywords of a run, and those of the policy of its session.

    Raises:
        TypeError: one is neither.
    """
    run: dict[str, Any] = {}
    policy: dict[str, Any] = {}
    for name, value in options.items():
        if name in RUN:
            run[name] = value
        elif name in Policy.__annotations__:
            policy[name] = value
        else:
            known = ", ".join((*RUN, *Policy.__annotations__))
            raise TypeError(f"`{method}` has no option {name!r}; it has {known}")
    return cast("RunOptions", run), cast("Policy", policy)


def of_run(options: RunOptions) -> dict[str, Any]:
    """Returns what the server gets of the options of `Session.run`, without the inputs.

    Raises:
        TypeError: there is no such option.
    """
    return _to_wire(options, "run", RUN) if options else {}


def of_stream(options: StreamOptions) -> dict[str, Any]:
    """Returns what the server gets of the options of `Session.stream`, without the inputs.

    Raises:
        TypeError: there is no such option.
    """
    return _to_wire(options, "stream", STREAM)


def of_go_on(callbacks: OutputCallbacks) -> dict[str, Any]:
    """Returns what the server gets of the options of `Session.go_on`.

    Raises:
        TypeError: there is no such option.
    """
    _read(callbacks, "go_on", CALLBACKS)
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


def _read(
    options: Mapping[str, object], method: str, shapes: Mapping[str, Shape]
) -> dict[str, Any]:
    """Returns the options that are given, each as the server gets it."""
    for given in options:
        if given not in shapes:
            raise TypeError(f"`{method}` has no option {given!r}; it has {', '.join(shapes)}")
    return {name: shapes[name](name, value) for name, value in options.items()}


def _to_wire(options: StreamOptions, method: str, shapes: Mapping[str, Shape]) -> dict[str, Any]:
    read = _read(options, method, shapes)
    wire: dict[str, Any] = {}
    stdin, argv, syntax = read.get("stdin"), read.get("argv"), read.get("syntax")
    if read.get("timeout") is not None:
        wire["timeout"] = read["timeout"]
    if stdin:
        wire["stdin"] = to_plain(stdin, "stdin")
    if argv is not None:
        wire["argv"] = to_plain(argv, "argv")
    for name in ("name", "working_directory"):
        if read.get(name) is not None:
            wire[name] = shown(read[name])
    if syntax not in (None, "python"):
        wire["syntax"] = syntax
    for each in _FLAGS:
        if read.get(each):
            wire[each] = True
    return wire
