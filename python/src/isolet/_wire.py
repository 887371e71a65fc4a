"""Frames on a pipe: messages of the protocol, in Python's `marshal` format."""

from __future__ import annotations

import marshal
import os
import reprlib
import sys
from collections.abc import Callable
from typing import Any, Final, cast

from .errors import ProtocolError

PROTOCOL: Final = 1
"""The version of the protocol."""

MAX_FRAME: Final = 1 << 30
"""The longest frame in bytes, without its head."""

CHUNK: Final = 1 << 16
"""How many bytes are read at a time, unless a frame is longer."""

SLICE: Final = 1 << 17
"""How many bytes are written at a time. The server cannot read from a pipe while it is written to,
so that one long write would keep it waiting."""

_LONG: Final = 1 << 16
"""The length from which a text or bytes are a piece of their own."""

_LONG_TYPES: Final = frozenset([str, bytes])

_STEP: Final = 1 << 20
"""How much memory is taken for a long frame before any of it has come: its length is only claimed
then. Later on, as much again as has come."""

_MOST_VALUES: Final = 100
"""A dict with more values is not searched for long ones."""

Message = list[Any]

_SHAPES: Final[dict[str, tuple[tuple[type, ...], int]]] = {
    # The types of the first items after the operation, and how many items there are in all.
    "ok": ((int,), 3),
    "error": ((int, dict), 3),
    "output": ((int, int, str), 4),
    "display": ((int, dict), 3),
    "call": ((int, int, int, str, dict, int), 7),
    "uncall": ((int,), 2),
    "audit": ((int, int, dict), 4),
    "fatal": ((str,), 2),
}

_dumps: Callable[[Message, int], bytes] = marshal.dumps
if sys.version_info >= (3, 13):

    def loads(data: bytes | bytearray) -> Any:
        """Reads one value. The server writes no code objects, and none would be read."""
        return marshal.loads(data, allow_code=False)
else:
    loads = marshal.loads


def encode(message: Message) -> list[bytes]:
    """Returns the frame of a message of plain values, in pieces.

    Long texts and bytes, of those that are items of the message or values of its dicts, are pieces
    of their own, which saves copies.

    Raises:
        ProtocolError: it is too long.
    """
    body = _pieces(message) if any(map(_has_long, message)) else [_dumps(message, 2)]
    size = sum(map(len, body))
    if size > MAX_FRAME:
        raise _too_long(size)
    body[0] = size.to_bytes(4, "little") + body[0]
    return body


def _too_long(size: int) -> ProtocolError:
    return ProtocolError(f"a message has {size} bytes, the limit is {MAX_FRAME} bytes")


def _has_long(item: Any) -> bool:
    kind = cast("type[Any]", type(item))
    if kind is str or kind is bytes:
        return len(item) >= _LONG
    if kind is dict and len(item) <= _MOST_VALUES:
        return any(type(value) in _LONG_TYPES and len(value) >= _LONG for value in item.values())
    return False


def _pieces(message: Message) -> list[bytes]:
    pieces: list[bytes] = []
    short = [b"[", len(message).to_bytes(4, "little")]
    for item in message:
        _add(item, short, pieces)
    if short:
        pieces.append(b"".join(short))
    return pieces


def _add(item: Any, short: list[bytes], pieces: list[bytes]) -> None:
    """Adds an item to `short`. What is long ends the piece that is made from that."""
    if not _has_long(item):
        short.append(_dumps(item, 2))
    elif type(item) is dict:
        short.append(b"{")
        for key, value in cast("dict[Any, Any]", item).items():
            short.append(_dumps(key, 2))
            _add(value, short, pieces)
        short.append(b"0")
    else:
        kind, data = (b"s", item) if type(item) is bytes else (b"u", item.encode())
        if len(data) > MAX_FRAME:
            # Its length may have no place in the format.
            raise _too_long(len(data))
        short += (kind, len(data).to_bytes(4, "little"))
        pieces += (b"".join(short), data)
        short.clear()


class Reader:
    """Reads messages from a pipe.

    `fill` makes one system call and keeps what it has read, whatever happens next: no signal
    handler of the program runs between the two, because `map` and `extend` are one step for it.
    """

    __slots__ = ("_counts", "_fds", "_frame", "_got", "_size", "_sizes")

    def __init__(self, fd: int) -> None:
        self._fds = (fd,)
        self._sizes = (CHUNK,)
        # What was read, and belongs to no complete message yet.
        self._got: list[bytes] = []
        # A frame that is longer than a chunk, and how many bytes of it were read.
        self._frame: bytearray | None = None
        self._size = 0
        self._counts: list[int] = []

    def fill(self) -> bool:
        """Reads what there is, or waits for it. Returns `False` at the end of the input.

        Raises:
            BlockingIOError: there is nothing, and the pipe does not block.
        """
        if self._frame is None:
            self._got.extend(map(os.read, self._fds, self._sizes))
            return bool(self._got[-1])
        view = memoryview(self._frame)[sum(self._counts) :]
        self._counts.extend(map(os.readv, self._fds, ((view,),)))
        return self._counts[-1] != 0

    def take(self, to: list[Message]) -> None:
        """Appends the messages that are complete.

        Raises:
            ProtocolError: what was read are no messages.
        """
        frame = self._frame
        if frame is not None:
            came = sum(self._counts)
            if came == self._size:
                self._frame = None
                to.append(_message(frame))
            elif came == len(frame):
                frame.extend(bytes(min(self._size - came, came)))
            return
        got = self._got
        if not got:
            return
        data = got[0] if len(got) == 1 else b"".join(got)
        found: list[Message] = []
        end = 0
        while len(data) - end >= 4:
            start = end + 4
            size = int.from_bytes(data[end:start], "little")
            if size > MAX_FRAME:
                raise ProtocolError(
                    f"the server wrote {data[end : end + 40]!r}, which is no message"
                )
            if len(data) - start < size:
                if size > CHUNK:
                    # It is read where it will be parsed.
                    frame = bytearray(data[start:])
                    self._counts = [len(frame)]
                    frame.extend(bytes(min(size - len(frame), _STEP)))
                    self._frame, self._size = frame, size
                    end = len(data)
                break
            found.append(_message(data[start : start + size]))
            end = start + size
        to.extend(found)
        got[:] = (data[end:],) if end < len(data) else ()


def _message(data: bytes | bytearray) -> Message:
    try:
        message: Any = loads(data)
    except (ValueError, EOFError, TypeError, OverflowError, MemoryError) as error:
        shown = bytes(data[:40])
        raise ProtocolError(f"the server wrote {shown!r}, which is no message: {error}") from None
    if not _is_message(message):
        # Of what it wrote, this looks at a few items and levels.
        raise ProtocolError(f"the server wrote {reprlib.repr(message)[:40]}, which is no message")
    return message


def _is_message(value: Any) -> bool:
    if type(value) is not list or not value:
        return False
    operation, *items = cast("Message", value)
    if type(operation) is not str:
        return False
    # An operation of a newer server is refused by its name.
    kinds, length = _SHAPES.get(operation, ((), len(items) + 1))
    return len(items) + 1 == length and all(
        type(item) is kind for item, kind in zip(items, kinds, strict=False)
    )
