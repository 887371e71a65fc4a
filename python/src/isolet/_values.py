"""What crosses to the guest: plain data, and objects that have a plain form.

Exact plain types are checked and not copied. Everything else becomes one of them, or an error
names its path.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import date, datetime, time
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, cast

from . import _shapes
from .errors import TransferError

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_DEPTH: Final = 100
"""How deep lists and dicts may be nested."""

MAX_ITEMS: Final = 1 << 26
"""How many items a value may have in all: far more than fit into a frame of the server."""

_SCALARS: Final = frozenset([type(None), bool, int, float, bytes])
_KEYS: Final = _SCALARS | {str}
_LISTS: Final = (list, tuple, set, frozenset)

_HINT: Final = "pass None, bool, int, float, str, bytes, and lists, dicts and dataclasses of them"


class _FaultError(Exception):
    """Why a value cannot cross, and where in it."""

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.path: list[str] = []
        self.containers: list[int] = []


class _Budget:
    """How many more items a value may have."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_ITEMS

    def take(self, items: int) -> None:
        self.left -= items
        if self.left < 0:
            raise _FaultError(f"has more than {MAX_ITEMS} items")


def to_plain(value: Any, where: str) -> Any:
    """Returns `value` as plain data: None, bools, ints, floats, strings, bytes, lists and dicts.

    Raises:
        TransferError: it cannot cross. `where` begins the path in the message.
    """
    kind = _kind(value)
    if kind in _SCALARS or (kind is str and value.isascii()):
        return value
    try:
        return _plain(value, 0, _Budget())
    except _FaultError as fault:
        path = where + "".join(reversed(fault.path))
        if len(set(fault.containers)) < len(fault.containers):
            path, fault.reason = where, "contains itself"
        raise TransferError(f"`{path}` {fault.reason}", fault.hint) from None


def variables(values: Mapping[str, Any], where: str = "inputs") -> dict[str, Any]:
    """Returns variables as plain data, by name."""
    _shapes.variables(where, values)
    plain: dict[str, Any] = {}
    for name, value in values.items():
        if type(name) is not str:
            raise TransferError(f"the name {name!r} in `{where}` is {_named(name)}, not a str")
        plain[to_plain(name, f"a name in {where}")] = to_plain(value, f"{where}[{name!r}]")
    return plain


def text(value: str, what: str) -> str:
    """Returns a text that is an argument itself, such as code.

    Raises:
        ConfigError: it is no text.
        TransferError: it has lone surrogates.
    """
    _shapes.text(what, value)
    if not value.isascii():
        to_plain(value, what)
    return value


def shown(value: str) -> str:
    """Returns a text that is to cross in any case. `?` replaces lone surrogates."""
    return value.encode("utf-8", "replace").decode("utf-8")


def _plain(value: Any, depth: int, budget: _Budget) -> Any:
    kind = _kind(value)
    if kind in _SCALARS:
        return value
    if kind is str:
        return _text(value)
    if kind is list:
        return _list(value, depth, budget)
    if kind is dict:
        return _dict(value, depth, budget)
    return _other(value, kind, depth, budget)


def _text(value: str) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            code = ord(value[error.start])
            raise _FaultError(
                f"has the lone surrogate {code:#x} at {error.start}",
                "decode it with `errors='replace'`, or pass bytes",
            ) from None
    return value


def _list(items: list[Any], depth: int, budget: _Budget) -> list[Any]:
    kinds = set(map(type, items))
    budget.take(len(items) + 1)
    if depth >= MAX_DEPTH:
        raise _FaultError(f"is nested deeper than {MAX_DEPTH} levels")
    if _KEYS.issuperset(kinds) and (str not in kinds or _are_ascii(items)):
        return items
    plain = None
    for index, item in enumerate(items):
        try:
            crossed = _plain(item, depth + 1, budget)
        except _FaultError as fault:
            fault.path.append(f"[{index}]")
            fault.containers.append(id(items))
            raise
        if crossed is not item and plain is None:
            plain = items[:index]
        if plain is not None:
            plain.append(crossed)
    return items if plain is None else plain


def _dict(items: dict[Any, Any], depth: int, budget: _Budget) -> dict[Any, Any]:
    budget.take(len(items) + 1)
    if depth >= MAX_DEPTH:
        raise _FaultError(f"is nested deeper than {MAX_DEPTH} levels")
    copied = not (_KEYS.issuperset(map(type, items)) and _are_ascii(items))
    if not copied and _KEYS.issuperset(map(type, items.values())) and _are_ascii(items.values()):
        return items
    changed: dict[Any, Any] = {}
    for key, item in items.items():
        try:
            crossed = _plain(item, depth + 1, budget)
        except _FaultError as fault:
            fault.path.append(_subscript(key))
            fault.containers.append(id(items))
            raise
        if crossed is not item:
            changed[key] = crossed
    if not copied and not changed:
        return items
    return {_key(key): changed.get(key, item) for key, item in items.items()}


def _are_ascii(scalars: Iterable[Any]) -> bool:
    """Returns whether those that are texts need no closer look."""
    return all(type(scalar) is not str or scalar.isascii() for scalar in scalars)


def _key(key: Any) -> Any:
    if type(key) in _SCALARS:
        return key
    try:
        plain = _plain(key, 0, _Budget())
        if type(plain) in _KEYS:
            return plain
    except _FaultError as fault:
        fault.path = [_subscript(key)]
        raise
    raise _FaultError(
        f"has a key that is {_named(key)}", "keys are strings, numbers, bytes or None"
    )


def _other(value: Any, kind: type[Any], depth: int, budget: _Budget) -> Any:
    if isinstance(value, Enum):
        return _plain(value.value, depth, budget)
    # numpy's scalars and arrays, and what is like them. Some are subclasses of `float` and `str`.
    if hasattr(kind, "dtype") and hasattr(kind, "tolist"):
        return _plain(value.tolist(), depth, budget)
    if isinstance(value, str):
        return _text(str.__str__(value))
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(cast("bytes", value))
    if isinstance(value, _LISTS):
        return _list(list(cast("list[Any]", value)), depth, budget)
    if isinstance(value, Mapping):
        return _dict(dict(cast("Mapping[Any, Any]", value)), depth, budget)
    if hasattr(kind, "__dataclass_fields__"):
        return _fields(value, _dataclass_fields(kind), depth, budget)
    if hasattr(kind, "model_fields") and hasattr(kind, "model_dump"):
        return _model(value, depth, budget)
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if kind in _texts():
        return _text(str(value))
    if hasattr(kind, "__fspath__"):
        return _text(str(value.__fspath__()))
    raise _FaultError(f"is {_named(value)}, which cannot cross to the guest", _HINT)


def _dataclass_fields(kind: Any) -> Iterable[str]:
    return kind.__dataclass_fields__


def _fields(value: Any, names: Iterable[str], depth: int, budget: _Budget) -> dict[str, Any]:
    if depth >= MAX_DEPTH:
        raise _FaultError(f"is nested deeper than {MAX_DEPTH} levels")
    plain: dict[str, Any] = {}
    for name in names:
        budget.take(1)
        try:
            plain[name] = _plain(getattr(value, name), depth + 1, budget)
        except _FaultError as fault:
            fault.path.append(f".{name}")
            fault.containers.append(id(value))
            raise
    return plain


def _model(value: Any, depth: int, budget: _Budget) -> Any:
    """Returns a pydantic model as its own serialisers want it."""
    try:
        fields = value.model_dump()
    except Exception as error:
        raise _FaultError(f"is {_named(value)}, and `model_dump()` failed: {error}") from error
    return _plain(fields, depth, budget)


def _texts() -> frozenset[type]:
    """Returns the types that cross as their text, of those that the program has imported."""
    names = (("decimal", "Decimal"), ("uuid", "UUID"))
    return frozenset(getattr(sys.modules[at], name) for at, name in names if at in sys.modules)


def _kind(value: Any) -> type[Any]:
    return cast("type[Any]", type(value))


def _subscript(key: Any) -> str:
    shown = repr(key)
    return f"[{shown if len(shown) <= 40 else shown[:37] + '...'}]"


def _named(value: Any) -> str:
    kind = _kind(value)
    name = kind.__qualname__
    if kind.__module__ not in ("builtins", "__main__"):
        name = f"{kind.__module__}.{name}"
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
