"""Host functions as Python functions: with a signature, a docstring and plain calls.

What may be called, with what, is decided by the host for every single call. A guest that takes
these functions apart can make calls that look wrong, and gets the host's refusal.
"""

import ast
import asyncio
import functools
import types
import typing
from marshal import dumps, loads  # the guest may put others in their places

import _isolet_failures as failures
import _isolet_waits as waits
from _isolet_values import Unrepresentable, plain

MARSHAL_VERSION = 2
BYTES_HEADER = bytes.__basicsize__ - 1
CALL = "<call>"  # what the functions call; no guest code can spell it
UNKNOWN = ...  # a default that only the host knows
SIMPLE = {"None": None, "bool": bool, "int": int, "float": float, "str": str, "bytes": bytes}

KINDS = ("positional_only", "standard", "var_positional", "keyword_only", "var_keyword")
POSITIONAL = ("positional_only", "standard")
SHAPE = "<function>"  # the name of a function until it gets its own
USUAL = 6  # parameters; functions of up to so many can be made at once

SHORT = 4096  # bytes of an answer that needs no room of its own

bridge = None
short = bytes(SHORT)  # the host writes into it
shapes = {}  # kinds of parameters and whether it is async, to the code of such a function
functions = {}  # what the host has put into the namespace: name to function or module
awaitable = {}  # plain functions to those that can be awaited in their place


class Submission(BaseException):
    """Unwinds a run that has submitted its result. Nothing else is wrong."""


class Elsewhere:
    """A default that is not sent: a server fills it in."""

    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return repr(self.value)


def attach(host_bridge):
    """Connects a restored interpreter to its host."""
    global bridge
    bridge = host_bridge


def prepare():
    """Compiles the code of usual functions, when the memory image is made."""
    for count in range(USUAL + 1):
        for is_async in (False, True):
            shape(("standard",) * count, is_async)


def rehearse():
    """Makes a function that nobody can call."""
    function = make_tool(["f", "", [["x", "standard", ["any"], "no"]], ["any"], False], "f", "f")
    del awaitable[function], awaitable[function.map]


def define(command, namespace):
    """Makes the functions that the host allows and puts them into the namespace."""
    for spec in command["tools"]:
        name = spec[0]
        functions[name] = namespace[name] = make_tool(spec, name, name)
    for form, spec in command["submit"]:
        name = spec[0]
        function = make_function(spec, functools.partial(submit, form, name))
        functions[name] = namespace[name] = function
    return {}


def make_tool(spec, called, shown, module="__main__"):
    """The function that calls the tool which the host knows as `called`."""
    is_async = spec[4]
    shown_aio = shown if is_async else f"{shown}.aio"
    aio = make_function(spec, functools.partial(call_async, called), shown_aio, True, module)
    function = aio
    if not is_async:
        function = make_function(spec, functools.partial(call, called), shown, False, module)
    function.aio = aio
    function.map = make_map(function, is_async)
    if not is_async:
        awaitable[function] = aio
        awaitable[function.map] = function.map.aio
    return function


def is_function(name, value):
    """Whether a variable is one of the host's functions, as the host defined it."""
    return functions.get(name) is value


def make_function(spec, target, shown_name=None, is_async=False, module="__main__"):
    """A function of the given signature that passes its arguments on as a dict.

    Python itself binds the arguments and says what is wrong with them. No text becomes source code:
    the host's names are put into code that was compiled without them, and its defaults never are.
    """
    name, doc, params, returns = spec[:4]
    code = rename(shape(tuple(param[1] for param in params), is_async), name, params)
    scope = {CALL: target, "__builtins__": __builtins__, "__name__": module}
    function = types.FunctionType(code, scope)
    function.__qualname__ = shown_name or name
    function.__doc__ = doc or None
    optional = [param for param in params if param[3] != "no"]
    positional = [param for param in optional if param[1] in POSITIONAL]
    function.__defaults__ = tuple(default_of(param) for param in positional) or None
    function.__kwdefaults__ = {
        param[0]: default_of(param) for param in optional if param[1] == "keyword_only"
    } or None
    annotations = {param[0]: annotation(param[2]) for param in params if param[2] != ["any"]}
    if returns != ["any"]:
        annotations["return"] = annotation(returns)
    function.__annotations__ = annotations
    return function


def shape(kinds, is_async):
    """The code of a function whose parameters have these kinds, and numbers as their names. It is
    compiled once: compiling takes longer than all else that makes a function.
    """
    code = shapes.get((kinds, is_async))
    if code is None:
        code = shapes[kinds, is_async] = compile_shape(kinds, is_async)
    return code


def compile_shape(kinds, is_async):
    names = [str(number) for number in range(len(kinds))]  # no name that a guest can spell
    named = {kind: [] for kind in KINDS}
    for name, kind in zip(names, kinds):
        named[kind].append(ast.arg(name))
    arguments = ast.arguments(
        posonlyargs=named["positional_only"],
        args=named["standard"],
        vararg=next(iter(named["var_positional"]), None),
        kwonlyargs=named["keyword_only"],
        kw_defaults=[None] * len(named["keyword_only"]),
        kwarg=next(iter(named["var_keyword"]), None),
        defaults=[],
    )
    bound = ast.Dict(
        [ast.Constant(name) for name in names],
        [ast.Name(name, ast.Load()) for name in names],
    )
    result = ast.Call(ast.Name(CALL, ast.Load()), [bound], [])
    if is_async:
        result = ast.Await(result)
    kind = ast.AsyncFunctionDef if is_async else ast.FunctionDef
    definition = kind(SHAPE, arguments, [ast.Return(result)], [], type_params=[])
    tree = ast.fix_missing_locations(ast.Module([definition], []))
    scope = {}
    exec(compile(tree, "<isolet>/tool", "exec", dont_inherit=True), scope)
    return scope[SHAPE].__code__


def rename(code, name, params):
    """The same code, with these names of the function and of its parameters."""
    names = {str(number): param[0] for number, param in enumerate(params)}
    return code.replace(
        co_name=name,
        co_qualname=name,
        co_varnames=tuple(names[number] for number in code.co_varnames),
        co_consts=tuple(names.get(value, value) for value in code.co_consts),
    )


def default_of(param):
    if param[3] == "elsewhere":
        return Elsewhere(param[4])
    return UNKNOWN if param[3] == "unknown" else param[4]


def annotation(hint):
    kind, members = hint[0], hint[1:]
    if kind in SIMPLE:
        return SIMPLE[kind]
    if kind == "list":
        return list if members[0] == ["any"] else list[annotation(members[0])]
    if kind == "dict":
        return dict if members[0] == ["any"] else dict[str, annotation(members[0])]
    if kind == "object":
        title, fields = members
        return typed_dict(title, fields)
    if kind == "union":
        return typing.Union[tuple(annotation(member) for member in members)]
    if kind == "literal":
        return typing.Literal[tuple(members)]
    return typing.Any


def typed_dict(title, fields):
    """A type of dicts with these keys, which annotations show by its title."""
    keys = {
        name: annotation(hint) if is_required else typing.NotRequired[annotation(hint)]
        for name, hint, is_required in fields
    }
    made = typing.TypedDict(title, keys)
    made.__module__ = "builtins"
    return made


def make_map(function, is_async):
    async def map_async(*iterables, return_exceptions=False):
        """Calls the function with each item, side by side, and returns the results in order.

        Several iterables give several arguments, as with the built-in map(). The first exception is
        raised and the other calls are cancelled; with return_exceptions it is in its result's
        place.
        """
        tasks = [asyncio.ensure_future(function.aio(*items)) for items in zip(*iterables)]
        try:
            return await asyncio.gather(*tasks, return_exceptions=return_exceptions)
        finally:
            for task in tasks:
                task.cancel()

    def map(*iterables, return_exceptions=False):
        return waits.wait_for(map_async(*iterables, return_exceptions=return_exceptions))

    map.__doc__ = map_async.__doc__
    made = map_async if is_async else map
    made.__name__, made.__qualname__ = "map", f"{function.__qualname__}.map"
    made.aio = map_async
    return made


def call(name, arguments):
    """Calls a tool and waits for it: for a moment as it is, then by suspending the whole
    stack.
    """
    data = dump(name, arguments)
    number = 0  # an interrupt may leave it so, and the last call is meant
    try:
        number = start(name.encode(), data, SHORT)
        size = waits.answered(number) if number else 0
    except BaseException:
        bridge.cancel(number)
        raise
    return take(number, size) if number else result(loads(short))


async def call_async(name, arguments):
    data = dump(name, arguments)
    number = 0
    try:
        number = start(name.encode(), data, 0)
        size = await bridge.answered(number)
    except BaseException:
        bridge.cancel(number)
        raise
    return take(number, size)


def start(called, data, room):
    # Numbers cross to JavaScript as they are; a str would be decoded by what the guest can replace.
    return bridge.call(
        id(called) + BYTES_HEADER,
        len(called),
        id(data) + BYTES_HEADER,
        len(data),
        id(short) + BYTES_HEADER,
        room,
    )


def submit(form, name, fields):
    data = dump(name, fields)
    number = bridge.submit(form, id(data) + BYTES_HEADER, len(data))
    take(number, waits.answered(number))
    raise Submission


def dump(name, arguments):
    crossing = {}
    try:
        for key, value in arguments.items():
            if value is not UNKNOWN and type(value) is not Elsewhere:
                crossing[key] = plain(value)
    except Unrepresentable as reason:
        raise TypeError(f"{name}() cannot be called with this '{key}': {reason}") from None
    return dumps(crossing, MARSHAL_VERSION)


def take(number, size):
    # Freshly made and unshared, so that the host may still write into it.
    buffer = bytes(size)
    bridge.answer(number, id(buffer) + BYTES_HEADER, size)
    return result(loads(buffer))


def result(answer):
    """What a call returns, or the exception that it raises."""
    if answer[0]:
        return answer[1]
    raise failures.exception(*answer[1:])
