"""What the connections of both APIs have in common: a process, numbers, its end, fork and exit."""

from __future__ import annotations

import atexit
import os
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ._find import find_binary
from ._process import Process
from ._wire import PROTOCOL, Message, Reader, encode
from .errors import IsoletError, ProtocolError, ServerDiedError, SessionClosedError, StartError
from .version import __version__

if TYPE_CHECKING:
    from .policy import AuditEvent

_Made = TypeVar("_Made")

HELLO = 1
"""The number of the first request."""

_AT_EXIT_SECONDS = 1.0
_DYING_SECONDS = 2.0


class Connection(ABC):
    """A server that was started, and the pipes to it."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str] | None) -> None:
        self.process = Process(command, env)
        self.ended: tuple[type[IsoletError], str, str | None] | None = None
        self.dropped: deque[tuple[str, int]] = deque()
        """Operations on sessions and sandboxes that nobody has any more. Finalizers append to it,
        which may run at any time in any thread; the next message takes them along."""
        self.audits: dict[int, Callable[[AuditEvent], object]] = {}
        """What the sandboxes with these numbers want to be told of."""
        self._command = command
        self._reader = Reader(self.process.stdout)
        self._greeted = False
        _connections.add(self)

    @property
    def hello(self) -> Message:
        """The first message."""
        return ["hello", HELLO, {"protocol": PROTOCOL, "client": f"python {__version__}"}]

    @abstractmethod
    def number(self) -> int:
        """Returns a number that no request, sandbox or session has yet."""

    @abstractmethod
    def close(self, seconds: float) -> None:
        """Ends the server, and kills it if it goes on for this time."""

    def error(self) -> IsoletError:
        """Returns why the connection has ended."""
        kind, message, hint = self.ended or (ServerDiedError, "the server was closed", None)
        return kind(message, hint)

    def take_dropped(self) -> bytes:
        """Returns the messages that end what was dropped."""
        frames: list[bytes] = []
        while self.dropped:
            operation, number = self.dropped.popleft()
            if operation == "drop":
                self.audits.pop(number, None)
            frames.extend(encode([operation, self.number(), number]))
        return b"".join(frames)

    def greet(self, message: Message) -> ProtocolError | None:
        """Reads the answer to `hello`. Returns what is wrong with it."""
        self._greeted = True
        if message[0] == "error":
            return ProtocolError(message[2].get("message", "the server refused the connection"))
        theirs = message[2].get("protocol")
        if theirs == PROTOCOL:
            return None
        return ProtocolError(
            f"`{self._command[0]}` {message[2].get('version')} speaks version {theirs} of the "
            f"protocol, isolet {__version__} for Python speaks version {PROTOCOL}",
            "install versions that belong together",
        )

    def set_ended(self, error: IsoletError | None) -> None:
        """Notes why the connection has ended; because of the process, if nothing else is known."""
        self.process.end(_DYING_SECONDS)
        if self.ended is not None:
            return
        if error is not None:
            self.ended = type(error), str(error.args[0]), error.hint
            return
        how = self.process.how_it_ended()
        if self._greeted:
            message = f"the server, process {self.process.pid}, {how}"
            self.ended = ServerDiedError, message, "the next session starts another one"
        else:
            message = f"`{' '.join(self._command)}` {how} before it answered"
            self.ended = StartError, message, "it may have said why on the standard error"

    def set_closed(self) -> None:
        """Notes that the connection ends because this program wants it to."""
        if self.ended is None:
            self.ended = SessionClosedError, "the server was closed", "make a new session"

    def abandon(self) -> None:
        """Leaves the server to the process that has started it; this one is its child."""
        message = f"the session belongs to process {os.getppid()}, which has forked this one"
        self.ended = SessionClosedError, message, "make a new session"
        self.process.forget()
        self.process.close_input()
        self.process.close_output()


class Registration(Generic[_Made]):
    """A sandbox on a server. It is dropped there when neither it nor a session of it is left."""

    __slots__ = ("__weakref__", "made", "number")

    def __init__(self, link: Connection, number: int, made: _Made) -> None:
        self.number = number
        self.made = made
        """What gets the answer to the request that has made it."""
        weakref.finalize(self, link.dropped.append, ("drop", number)).atexit = False


class Command:
    """How a server is started."""

    def __init__(
        self,
        binary: str | os.PathLike[str] | None,
        assets: str | os.PathLike[str] | None,
        max_sessions: int | None,
        env: Mapping[str, str] | None,
    ) -> None:
        self._binary = binary
        self._arguments = ["serve", "--stdio", "--wire", "marshal"]
        if assets is not None:
            self._arguments += ["--assets", os.fspath(assets)]
        if max_sessions is not None:
            self._arguments += ["--max-sessions", str(max_sessions)]
        self.env = env

    def line(self) -> list[str]:
        """Returns the program and its arguments.

        Raises:
            StartError: there is no such program.
        """
        return [find_binary(self._binary), *self._arguments]


def fatal(message: Message) -> ProtocolError:
    """Returns the exception of a `fatal` message."""
    return ProtocolError(f"the server ended the connection: {message[1]}")


_connections: weakref.WeakSet[Connection] = weakref.WeakSet()


def _close_all() -> None:
    for connection in list(_connections):
        connection.close(_AT_EXIT_SECONDS)


def _abandon_all() -> None:
    global _connections
    for connection in list(_connections):
        connection.abandon()
    _connections = weakref.WeakSet()


def audit_event(message: Message) -> Any:
    """Returns the event of an `audit` message, with the session's number of this side."""
    return {**message[3], "session": message[2]}


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)
