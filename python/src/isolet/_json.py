"""Values in JSON, as `docs/reference/protocol.md` describes it: for clients over HTTP."""

from __future__ import annotations

import json
import math
from typing import Any, Final, cast

from .errors import ProtocolError, TransferError

_BYTES: Final = "$bytes"
_FLOAT: Final = "$float"
_DICT: Final = "$dict"


def encode(value: Any) -> bytes:
    """Returns plain data as JSON.

    Raises:
        TransferError: an integer has too many digits for this Python.
    """
    try:
        return json.dumps(_marked(value), ensure_ascii=False, separators=(",", ":")).encode()
    except ValueError as error:
        raise TransferError(f"a value cannot be written as JSON: {error}") from None


def decode(text: bytes) -> Any:
    """Reads JSON.

    Raises:
        ProtocolError: it is none, is nested too deeply, or has an integer with too many digits for
            this Python.
    """
    try:
        return json.loads(text, object_hook=_unmarked, parse_constant=_refused)
    except (ValueError, TypeError, RecursionError) as error:
        raise ProtocolError(f"the node answered {text[:40]!r}, which is no JSON: {error}") from None


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _marked(value: Any) -> Any:
    """Returns the value with objects for what JSON cannot write."""
    kind = cast("type[Any]", type(value))
    if kind is list:
        return [_marked(item) for item in value]
    if kind is dict:
        items = cast("dict[Any, Any]", value)
        if not all(type(key) is str for key in items) or _is_like_a_mark(items):
            return {_DICT: [[_marked(key), _marked(item)] for key, item in items.items()]}
        return {key: _marked(item) for key, item in items.items()}
    if kind is bytes:
        import base64

        return {_BYTES: base64.b64encode(value).decode()}
    if kind is float and not math.isfinite(value):
        return {_FLOAT: str(value)}
    return value


def _is_like_a_mark(items: dict[str, Any]) -> bool:
    return len(items) == 1 and next(iter(items)).startswith("$")


def _unmarked(items: dict[str, Any]) -> Any:
    """Returns what an object stands for. What is in it was looked at before."""
    if not _is_like_a_mark(items):
        return items
    ((mark, held),) = items.items()
    if mark == _BYTES:
        import base64

        return base64.b64decode(held, validate=True)
    if mark == _FLOAT:
        return float(held)
    return dict(held) if mark == _DICT else items
