"""Type annotations: as JSON schemas, and as what makes their objects of plain data.

Both are `None` for an annotation that is not understood: then any value is passed on as it is.
"""

from __future__ import annotations

import collections.abc
import sys
import types
import typing
from collections.abc import Callable
from enum import Enum
from typing import Any, cast

Schema = dict[str, Any]
Maker = Callable[[Any], Any]

_SIMPLE: dict[Any, str] = {
    None: "null",
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    bytes: "bytes",
    bytearray: "bytes",
}
_LISTS: tuple[Any, ...] = (
    list,
    tuple,
    set,
    frozenset,
    collections.abc.Sequence,
    collections.abc.Iterable,
    collections.abc.Collection,
)
_DICTS: tuple[Any, ...] = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_MADE_OF_LISTS: tuple[Any, ...] = (tuple, set, frozenset)


def schema(annotation: Any) -> Schema | None:
    """Returns the JSON schema of an annotation. Its type `bytes` is isolet's own."""
    annotation = _bare(annotation)
    if _hashable(annotation) and annotation in _SIMPLE:
        return {"type": _SIMPLE[annotation]}
    origin, arguments = _parts(annotation)
    if _is_union(origin):
        members = [schema(member) for member in arguments]
        known = [member for member in members if member is not None]
        return {"anyOf": known} if len(known) == len(members) else None
    if origin is typing.Literal:
        return _choice(arguments)
    if origin in _LISTS:
        items = schema(arguments[0]) if _is_uniform(origin, arguments) else None
        return {"type": "array"} if items is None else {"type": "array", "items": items}
    if origin in _DICTS:
        return _mapping(arguments)
    if isinstance(annotation, type):
        annotation = cast("type[Any]", annotation)
        if issubclass(annotation, Enum):
            return _choice(tuple(annotation))
        if _is_record(annotation) or typing.is_typeddict(annotation):
            return {"type": "object"}
    return None


def maker(annotation: Any) -> Maker | None:
    """Returns what makes an object of this annotation of plain data.

    It makes dataclasses, pydantic models and enums, tuples and sets, also inside of others.
    """
    annotation = _bare(annotation)
    origin, arguments = _parts(annotation)
    if _is_union(origin):
        return _union(arguments)
    if origin in _LISTS:
        return _items(origin, arguments)
    if origin in _DICTS:
        item = maker(arguments[1]) if len(arguments) == 2 else None
        return None if item is None else lambda value: {k: item(v) for k, v in value.items()}
    if isinstance(annotation, type):
        annotation = cast("Any", annotation)
        if issubclass(annotation, Enum):
            return annotation
        if hasattr(annotation, "model_validate"):
            return annotation.model_validate
        if _is_record(annotation):
            return lambda value: _record(annotation, value)
    return None


def description(annotation: Any) -> str:
    """Returns what `Annotated[..., "text"]`, or pydantic's `Field(description=...)`, says."""
    if typing.get_origin(annotation) is typing.Annotated:
        for note in annotation.__metadata__:
            found = note if isinstance(note, str) else getattr(note, "description", None)
            if isinstance(found, str):
                return found
    return ""


def hints(function: Any) -> dict[str, Any]:
    """Returns the annotations of a function or class, those that cannot be resolved as text."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception:
        found: Any = getattr(function, "__annotations__", None)
        return {name: _resolved(hint, function) for name, hint in dict(found or {}).items()}


def _resolved(hint: Any, function: Any) -> Any:
    """Resolves one annotation, because another one cannot be."""
    if not isinstance(hint, str):
        return hint
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    names = getattr(function, "__globals__", None) or vars(module or types)
    try:
        return eval(hint, names)
    except Exception:
        return hint


def _bare(annotation: Any) -> Any:
    """Strips `Annotated`, `NewType`, aliases, `Required` and the like."""
    for _ in range(16):
        if typing.get_origin(annotation) is typing.Annotated:
            annotation = annotation.__origin__
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        elif hasattr(annotation, "__value__"):
            annotation = annotation.__value__
        else:
            break
    return annotation


def _parts(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    origin = typing.get_origin(annotation)
    if origin is not None:
        return origin, typing.get_args(annotation)
    return (annotation if _hashable(annotation) else None), ()


def _hashable(annotation: Any) -> bool:
    try:
        hash(annotation)
    except TypeError:
        return False
    return True


def _is_union(origin: Any) -> bool:
    return origin is typing.Union or origin is types.UnionType


def _is_uniform(origin: Any, arguments: tuple[Any, ...]) -> bool:
    if origin is tuple:
        return len(arguments) == 2 and arguments[1] is Ellipsis
    return len(arguments) == 1


def _is_record(kind: type) -> bool:
    return hasattr(kind, "__dataclass_fields__") or hasattr(kind, "model_validate")


def _choice(members: tuple[Any, ...]) -> Schema | None:
    values = [member.value if isinstance(member, Enum) else member for member in members]
    plain = all(value is None or type(value) in (bool, int, float, str) for value in values)
    return {"enum": values} if plain and values else None


def _mapping(arguments: tuple[Any, ...]) -> Schema | None:
    if len(arguments) != 2:
        return {"type": "object"}
    if _bare(arguments[0]) not in (str, Any):
        return None
    found: Schema = {"type": "object"}
    items = schema(arguments[1])
    if items is not None:
        found["additionalProperties"] = items
    return found


def _union(members: tuple[Any, ...]) -> Maker | None:
    makers = [made for made in map(maker, members) if made is not None]
    if not makers:
        return None
    is_plain = any(maker(member) is None and member is not type(None) for member in members)

    def make(value: Any) -> Any:
        if value is None and type(None) in members:
            return None
        failure = None
        for candidate in makers:
            try:
                return candidate(value)
            except Exception as error:
                failure = error
        if failure is not None and not is_plain:
            raise failure
        return value

    return make


def _items(origin: Any, arguments: tuple[Any, ...]) -> Maker | None:
    item = maker(arguments[0]) if _is_uniform(origin, arguments) else None
    if origin not in _MADE_OF_LISTS:
        return None if item is None else lambda value: [item(each) for each in value]
    if item is None:
        return origin
    return lambda value: origin(item(each) for each in value)


def _record(kind: Any, value: Any) -> Any:
    """Makes a dataclass of a dict."""
    found = hints(kind)
    made: dict[str, Any] = {}
    for name, item in value.items():
        make = maker(found.get(name))
        made[name] = item if make is None else make(item)
    return kind(**made)
