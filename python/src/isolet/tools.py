"""Functions of the host that a guest can call: `tool`, `Tool`, `Submit`, `call_id`."""

from __future__ import annotations

import builtins
import functools
import inspect
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import Any, Literal, cast, overload

from . import _schema
from ._values import to_plain
from .errors import ConfigError, TransferError

Style = Literal["plain", "async"]
Wire = dict[str, Any]

_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "positional_only",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "standard",
    inspect.Parameter.VAR_POSITIONAL: "var_positional",
    inspect.Parameter.KEYWORD_ONLY: "keyword_only",
    inspect.Parameter.VAR_KEYWORD: "var_keyword",
}
_PLAIN = (type(None), bool, int, float, str, bytes, list, dict)


class Tool:
    """A function of the host that a guest can call. `tool` makes it, and has the parameters.

    Called by the host, it is the function itself.

    Args:
        function: a function or coroutine function.
        name: its name in the guest; the function's own by default.
        doc: its documentation in the guest; the docstring by default.
        style: `plain`, or `async` for a function that the guest awaits.
        timeout: the most seconds that a call may take; no limit by default.
        max_calls: the most calls in a session; no limit by default.
        idempotent: whether a call that was interrupted by the end of a process is made again.

    Raises:
        ConfigError: it cannot be called, or has no name.
    """

    name: str
    """The name of the function in the guest."""
    doc: str
    """Its documentation there."""
    style: Style
    """`plain`, or `async`: the guest has to `await` it."""
    timeout: float | None
    """The most seconds that a call may take; then the guest gets `TimeoutError`."""
    max_calls: int | None
    """The most calls in a session; then the guest gets `RuntimeError`."""
    idempotent: bool
    """Whether a call that was under way when a process ended is made again when its session goes
    on; otherwise the guest gets the exception `CallInterrupted`."""
    is_named: bool
    """Whether the name was chosen, and is not just that of the function."""
    is_coroutine: bool
    """Whether the host's function is a coroutine function."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        doc: str | None = None,
        style: Style = "plain",
        timeout: float | None = None,
        max_calls: int | None = None,
        idempotent: bool = False,
    ) -> None:
        if not callable(function):
            raise ConfigError(f"a tool is a function, and {function!r} cannot be called")
        self.function = function
        """The function itself."""
        self.name = _name(function) if name is None else name
        self.is_named = name is not None or (isinstance(function, Tool) and function.is_named)
        if not self.name.isidentifier():
            raise ConfigError(
                f"a tool cannot have the name {self.name!r}", "give it a name: `tool(f, name='f')`"
            )
        self.doc = inspect.getdoc(_documented(function)) or "" if doc is None else doc
        self.style = style
        self.timeout = timeout
        self.max_calls = max_calls
        self.idempotent = idempotent
        self.is_coroutine = _is_coroutine(function)
        self._parameters, self._returns = _signature(function)
        makers = {p.name: _schema.maker(p.annotation) for p in self._parameters}
        self._makers = {name: maker for name, maker in makers.items() if maker is not None}
        self._by_name = not any(p.kind in _BY_POSITION for p in self._parameters) and not any(
            p.kind is p.VAR_KEYWORD for p in self._parameters
        )
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"

    def to_wire(self) -> Wire:
        """Returns the tool as `docs/reference/protocol.md` describes it."""
        wire: Wire = {"name": self.name, "doc": self.doc}
        if self.style != "plain":
            wire["style"] = self.style
        wire["parameters"] = [_parameter(parameter) for parameter in self._parameters]
        returns = _schema.schema(self._returns)
        if returns is not None:
            wire["returns"] = returns
        if self.timeout is not None:
            wire["timeout"] = self.timeout
        if self.max_calls is not None:
            wire["max_calls"] = self.max_calls
        if self.idempotent:
            wire["idempotent"] = True
        return wire

    def call(self, arguments: dict[str, Any]) -> Any:
        """Calls the function with `arguments` from the guest, by parameter."""
        if self._makers:
            arguments = {**arguments}
            for name, make in self._makers.items():
                if name in arguments:
                    arguments[name] = make(arguments[name])
        if self._by_name:
            return self.function(**arguments)
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for parameter in self._parameters:
            name = parameter.name
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional.extend(arguments.get(name, ()))
            elif parameter.kind is parameter.VAR_KEYWORD:
                named.update(arguments.get(name, {}))
            elif name not in arguments:
                continue
            elif parameter.kind is parameter.KEYWORD_ONLY:
                named[name] = arguments[name]
            else:
                positional.append(arguments[name])
        return self.function(*positional, **named)

    def result(self, value: Any) -> Any:
        """Returns as plain data the `value` that the function has returned.

        Raises:
            TransferError: it cannot cross.
        """
        return to_plain(value, f"{self.name}()")


_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)


@overload
def tool(
    function: Callable[..., Any],
    /,
    *,
    name: str | None = None,
    doc: str | None = None,
    style: Style = "plain",
    timeout: float | None = None,
    max_calls: int | None = None,
    idempotent: bool = False,
) -> Tool: ...
@overload
def tool(
    function: None = None,
    /,
    *,
    name: str | None = None,
    doc: str | None = None,
    style: Style = "plain",
    timeout: float | None = None,
    max_calls: int | None = None,
    idempotent: bool = False,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    doc: str | None = None,
    style: Style = "plain",
    timeout: float | None = None,
    max_calls: int | None = None,
    idempotent: bool = False,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Makes a function callable by guests, with other settings than a plain function has.

    The guest sees the function's signature, types and docstring, and its arguments are checked
    against the types: `bool`, `int`, `float`, `str`, `bytes`, `None`, `list[T]`, `dict[str, T]`,
    unions, `Literal`, enums, dataclasses, `TypedDict`s and pydantic models. Any other annotation
    allows everything. What the function returns crosses as values do; what it raises, the guest
    gets as an exception with the same text.

    A tool takes the place of a built-in function with its name, in all of the guest's code. If the
    name was not chosen, as in `tools=[len]`, that is a `UserWarning`.

    The function runs on the host with all rights of the program. It has to treat its arguments as
    untrusted.

    Args:
        function: a function or coroutine function. Without it, the result is a decorator.
        name: its name in the guest; the function's own by default.
        doc: its documentation in the guest; the docstring by default.
        style: `plain`, or `async` for a function that the guest awaits. Coroutine functions may
            have either.
        timeout: the most seconds that a call may take; no limit by default. Past it the guest gets
            `TimeoutError`. A coroutine is cancelled; another function cannot be stopped, and what
            it returns is dropped.
        max_calls: the most calls in a session; no limit by default. A further one is a
            `RuntimeError` in the guest.
        idempotent: whether a second call does no harm. A call that was under way when the process
            ended is then made again, with the same `call_id()`, when the recorded session goes on;
            by default the guest gets the exception `CallInterrupted`. See `Session.record`.

    Raises:
        ConfigError: it cannot be called, or has no name.

    >>> @isolet.tool(timeout=30, max_calls=100)
    ... def search(query: str, limit: int = 10) -> list[str]:
    ...     "Searches the corpus."
    >>> isolet.run("search('cats')", tools=[search])
    """

    def decorate(function: Callable[..., Any]) -> Tool:
        return Tool(
            function,
            name=name,
            doc=doc,
            style=style,
            timeout=timeout,
            max_calls=max_calls,
            idempotent=idempotent,
        )

    return decorate if function is None else decorate(function)


def call_id() -> int:
    """Returns the number of the call that this function serves, unique in its session.

    A call of an idempotent tool that is made again when a recorded session goes on has the number
    that it had. Together with the path of the journal, it is a key by which a service that the tool
    uses can recognise the second request.

    Raises:
        LookupError: no tool of a session is being called here, or it is one of a node's session.
    """
    return current_call.get()


current_call: ContextVar[int] = ContextVar("isolet.call_id")
"""The number of the call that is being served."""


class Submit:
    """The function by which a guest ends its run with a result: `SUBMIT(answer="42")`.

    A call with other arguments is a `TypeError` in the guest. After a call that fits,
    `Execution.status` is `submitted` and `Execution.value` is a dict of the fields.

    Args:
        fields: the type of each argument by name, `Any` for any value. A type may also be a JSON
            schema.
        name: the name of the function, `SUBMIT` by default.
    """

    fields: dict[str, Any]
    """The type of each argument by name."""
    name: str
    """The name of the function."""

    def __init__(self, fields: Mapping[str, Any], *, name: str = "SUBMIT") -> None:
        self.fields = dict(fields)
        self.name = name

    def __repr__(self) -> str:
        return f"Submit({self.fields!r}, name={self.name!r})"

    def to_wire(self) -> Wire:
        """Returns it as `docs/reference/protocol.md` describes it."""
        return {"name": self.name, "fields": [_field(*item) for item in self.fields.items()]}


def collect(tools: Iterable[Any] | Mapping[str, Any]) -> dict[str, Tool]:
    """Returns tools by name.

    Raises:
        ConfigError: two have the same name, or one is no function.
    """
    found: dict[str, Tool] = {}
    if isinstance(tools, Mapping):
        named = cast("Mapping[str, Any]", tools)
        made = [_renamed(name, function) for name, function in named.items()]
    elif callable(tools):
        raise ConfigError(f"`tools` is a function, and has to be a list: `[{_name(tools)}]`")
    else:
        given: Iterable[Any] = tools
        made = [each if isinstance(each, Tool) else Tool(each) for each in given]
    for each in made:
        if each.name in found:
            raise ConfigError(f"two tools have the name `{each.name}`", "`tool(f, name=...)`")
        found[each.name] = each
        if not (each.is_named or isinstance(tools, Mapping)) and hasattr(builtins, each.name):
            _warn_of(each.name)
    return found


def _warn_of(name: str) -> None:
    """Warns of a tool that nobody wants in the place of what is built in, such as `len`."""
    frame, level = inspect.currentframe(), 1
    package = os.path.dirname(__file__)
    while frame is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    warnings.warn(
        f"the tool `{name}` takes the place of Python's own `{name}` in the code: each call of it "
        f"crosses to the host, with plain data only; `tool({name}, name=...)` gives it another "
        "name, or this one without a warning",
        stacklevel=level,
    )


def _renamed(name: str, function: Any) -> Tool:
    if not isinstance(function, Tool):
        return Tool(function, name=name)
    if function.name == name:
        return function
    return Tool(
        function,
        name=name,
        doc=function.doc,
        style=function.style,
        timeout=function.timeout,
        max_calls=function.max_calls,
        idempotent=function.idempotent,
    )


def _name(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = cast("Any", function).func
    return getattr(function, "__name__", None) or type(function).__name__


def _documented(function: Any) -> Any:
    """Returns what has the documentation: for an object with `__call__`, its class or that."""
    while isinstance(function, functools.partial):
        function = cast("Any", function).func
    if inspect.isroutine(function) or inspect.isclass(function) or isinstance(function, Tool):
        return function
    return function.__call__ if function.__call__.__doc__ else cast("Any", type(function))


def _is_coroutine(function: Any) -> bool:
    if isinstance(function, Tool):
        return function.is_coroutine
    if inspect.iscoroutinefunction(function):
        return True
    # An object whose class has an asynchronous `__call__`.
    return not inspect.isclass(function) and inspect.iscoroutinefunction(function.__call__)


def _signature(function: Any) -> tuple[list[inspect.Parameter], Any]:
    """Returns parameters with their annotations, as far as these can be resolved."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        # Some built-in functions do not tell.
        anything = [
            inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
            inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
        ]
        return anything, inspect.Signature.empty
    annotated = _annotated(function)
    hints = _schema.hints(annotated)
    parameters = [
        parameter.replace(annotation=hints.get(parameter.name, parameter.annotation))
        for parameter in signature.parameters.values()
    ]
    return parameters, hints.get("return", signature.return_annotation)


def _annotated(function: Any) -> Any:
    """Returns the function whose annotations count."""
    while isinstance(function, (functools.partial, Tool)):
        is_tool = isinstance(function, Tool)
        function = cast("Any", function).function if is_tool else cast("Any", function).func
    if inspect.isclass(function):
        return cast("Any", function).__init__
    if inspect.isroutine(function):
        return inspect.unwrap(cast("Any", function))
    return type(function).__call__


def _parameter(parameter: inspect.Parameter) -> Wire:
    wire = _field(parameter.name, parameter.annotation)
    if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
        wire["kind"] = _KINDS[parameter.kind]
    if parameter.default is not parameter.empty:
        try:
            default = to_plain(parameter.default, parameter.name)
        except TransferError:
            default = NotImplemented
        # A tuple would come back as a list: only what stays the same is passed through the guest.
        if type(parameter.default) in _PLAIN and default is parameter.default:
            wire["default"] = default
        else:
            wire["optional"] = True
    return wire


def _field(name: str, annotation: Any) -> Wire:
    wire: Wire = {"name": name}
    if isinstance(annotation, dict):
        wire["schema"] = annotation
    elif annotation is not inspect.Parameter.empty:
        found = _schema.schema(annotation)
        if found is not None:
            wire["schema"] = found
        doc = _schema.description(annotation)
        if doc:
            wire["doc"] = doc
    return wire
