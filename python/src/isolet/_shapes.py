"""What arguments have to be, and the errors about those that are not.

A shape takes the name of an argument and its value, and returns what the server gets.
"""

from __future__ import annotations

import datetime
import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from .errors import ConfigError

Shape = Callable[[str, Any], Any]

_MOST_SHOWN = 60
_U64 = 2**64 - 1


def wrong(name: str, value: Any, wanted: str, hint: str | None = None) -> ConfigError:
    """Returns the error for an argument that is not what it has to be."""
    return ConfigError(f"`{name}` is {_shown(value)}, and has to be {wanted}", hint)


def wrong_kind(name: str, value: Any, wanted: str) -> ConfigError:
    """The same for a value that errors do not show."""
    return ConfigError(f"`{name}` is of type {type(value).__name__}, and has to be {wanted}")


def text(name: str, value: Any) -> str:
    """A string."""
    if not isinstance(value, str):
        raise wrong(name, value, "a string")
    return value


def text_or_bytes(name: str, value: Any) -> str | bytes:
    """A string or bytes."""
    if not isinstance(value, (str, bytes, bytearray, memoryview)):
        raise wrong(name, value, "a string or bytes")
    return cast("str | bytes", value)


def path(name: str, value: Any) -> str:
    """A path of the host, which becomes absolute: the server may have another directory."""
    return os.path.abspath(argument(name, value, "a path"))


def argument(name: str, value: Any, wanted: str = "a string") -> str:
    """A string, or what stands for the path of a file."""
    if not isinstance(value, (str, os.PathLike)):
        raise wrong(name, value, wanted)
    found: str | bytes = os.fspath(cast("str | os.PathLike[str]", value))
    return os.fsdecode(found)


def flag(name: str, value: Any) -> bool:
    """`True` or `False`."""
    if not isinstance(value, bool):
        raise wrong(name, value, "True or False")
    return value


def whole(least: int = 0, wanted: str = "a whole number", hint: str | None = None) -> Shape:
    """An int of 64 bits, or what can be an index."""

    def shape(name: str, value: Any) -> int:
        try:
            number = None if isinstance(value, bool) else operator.index(value)
        except TypeError:
            number = None
        if number is None or not least <= number <= _U64:
            raise wrong(name, value, f"{wanted}, {least} or more and less than 2**64", hint)
        return number

    return shape


def seconds(name: str, value: Any) -> float:
    """A duration."""
    number = _number(value)
    if number is None or not 0 <= number < math.inf:
        raise wrong(name, value, "a number of seconds, 0 or more")
    return number


def moment(name: str, value: Any) -> float:
    """A point in time."""
    if isinstance(value, datetime.datetime):
        return value.timestamp()
    number = _number(value)
    if number is None or not math.isfinite(number):
        raise wrong(name, value, "a time", "`datetime.datetime(...)`, or seconds since 1970")
    return number


def one_of(*values: str) -> Shape:
    """One of these strings."""
    wanted = " or ".join(filter(None, (", ".join(map(repr, values[:-1])), repr(values[-1]))))

    def shape(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in values:
            raise wrong(name, value, wanted)
        return value

    return shape


def list_of(each: Shape, what: str, example: str) -> Shape:
    """A list, or anything else that can be iterated but is no string."""

    def shape(name: str, value: Any) -> list[Any]:
        if isinstance(value, (str, os.PathLike)):
            raise wrong(name, value, f"a list of {what}", f"`{name}=[{_shown(value)}]`")
        is_list = isinstance(value, Iterable) and not isinstance(value, (bytes, Mapping))
        if not is_list:
            raise wrong(name, value, f"a list of {what}", f"`{name}=[{example}]`")
        items = cast("Iterable[Any]", value)
        return [each(f"{name}[{at}]", item) for at, item in enumerate(items)]

    return shape


def texts(example: str) -> Shape:
    """A list of strings."""
    return list_of(text, "strings", example)


def by_key(each: Shape, what: str, example: str, *, secretly: bool = False) -> Shape:
    """A dict with any strings as keys. Errors do not show it, and not its values, if `secretly`."""

    def shape(name: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            if secretly:
                raise wrong_kind(name, value, f"a dict of {what}: `{name}={example}`")
            raise wrong(name, value, f"a dict of {what}", f"`{name}={example}`")
        found: dict[str, Any] = {}
        for key, item in cast("Mapping[Any, Any]", value).items():
            if not isinstance(key, str):
                raise wrong(f"a key of {name}", key, "a string")
            found[key] = each(f"{name}[{key!r}]", item)
        return found

    return shape


def variables(name: str, value: Any) -> Any:
    """A dict of variables by name. They are read where they cross."""
    if not isinstance(value, Mapping):
        raise wrong(name, value, "a dict of variables by name", f"`{name}={{'x': 1}}`")
    return cast("Any", value)


def hidden_text(name: str, value: Any) -> str:
    """A string that errors do not show."""
    if not isinstance(value, str):
        raise wrong_kind(name, value, "a string")
    return value


def callback(name: str, value: Any) -> Any:
    """A function."""
    if not callable(value):
        raise wrong(name, value, "a function")
    return value


def optional(shape: Shape) -> Shape:
    """The same, or `None`."""
    return lambda name, value: None if value is None else shape(name, value)


def check_fields(of: object, shapes: Mapping[str, Shape]) -> None:
    """Checks the attributes of an object."""
    for name, shape in shapes.items():
        value = getattr(of, name)
        if value is not None:
            shape(f"{type(of).__name__}.{name}", value)


def _number(value: Any) -> float | None:
    if isinstance(value, (bool, str, bytes, bytearray)):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _shown(value: Any) -> str:
    """Returns a value as an error shows it."""
    try:
        found = repr(value)
    except Exception:
        return f"of type {type(value).__name__}"
    return found if len(found) <= _MOST_SHOWN else f"{found[:_MOST_SHOWN]}…"
