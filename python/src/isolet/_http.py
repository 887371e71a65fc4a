"""Connections to a node, and why it refuses: what the client of a node sends by HTTP."""

from __future__ import annotations

import contextlib
import os
import random
import select
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from ._interrupts import SIGNAL_SECONDS
from ._json import decode, encode
from .errors import (
    ConfigError,
    IsoletError,
    ProtocolError,
    ServerDiedError,
    TransferError,
    from_wire,
)

_MAX_BODY_BYTES = 64 << 20
_MAX_ANSWER_BYTES = 1 << 30
"""The longest answer, and the longest line of one, in bytes: what a frame of a server may have."""
_ROUND_SECONDS = 1.0
"""After how long nodes that are full are asked again, at most."""
_CONNECT_SECONDS = 5
_SILENT_SECONDS = 30
"""How long a machine that has vanished is waited for."""
_DOWN_SECONDS = 10
"""How long a node that could not be reached is tried after all others."""
_BY_PROXIES = (502, 503, 504)
_NEW_SESSION = "make a new one: `client.session()`"


class Node:
    """Where a node listens, and the connections to it that nobody uses."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.down_until = 0.0
        """Until when it is tried after all others."""
        self._path = ""
        self._make: Callable[[], HTTPConnection]
        try:
            url = urlsplit(address)
            host, port = url.hostname, url.port
        except ValueError:
            raise _no_address(address) from None
        if url.scheme == "unix" and url.path:
            self._make = lambda: _UnixConnection(url.path)
        elif url.scheme in ("http", "https") and host:
            kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
            self._make = lambda: kind(host, port, timeout=_CONNECT_SECONDS)
            self._path = url.path.rstrip("/")
        else:
            raise _no_address(address)
        self._idle: list[HTTPConnection] = []
        self._pid = os.getpid()

    def connection(self) -> HTTPConnection:
        """Returns a connection that nobody uses.

        Raises:
            ServerDiedError: the node cannot be reached.
        """
        if self._pid != os.getpid():
            # The parent process uses those.
            self._idle, self._pid = [], os.getpid()
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                break
            # There is nothing to read but its end.
            if not _is_readable(connection, 0):
                return connection
            connection.close()
        connection = self._make()
        try:
            connection.connect()
            connection.sock.settimeout(None)
            if connection.sock.family != socket.AF_UNIX:
                _notice_the_end(connection.sock)
        except OSError as error:
            connection.close()
            self.down_until = time.monotonic() + _DOWN_SECONDS
            raise self.lost(error) from error
        self.down_until = 0.0
        return connection

    def send(
        self,
        connection: HTTPConnection,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> HTTPResponse:
        connection.request(method, self._path + path, body, headers)
        if threading.current_thread() is threading.main_thread():
            # Ctrl-C just before a system call begins does not interrupt that.
            while not _is_readable(connection, SIGNAL_SECONDS):
                pass
        return connection.getresponse()

    def ask(
        self,
        connection: HTTPConnection,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
    ) -> tuple[int, bytes]:
        """Sends a request. Returns the status and the body of the answer.

        Raises:
            ServerDiedError: there is none.
        """
        with self.guarding(connection):
            response = self.send(connection, method, path, headers, body)
            status, data = response.status, read(response)
        self.keep(connection)
        return status, data

    def keep(self, connection: HTTPConnection) -> None:
        """Keeps a connection for later, unless the node has closed it."""
        if connection.sock is not None:
            self._idle.append(connection)

    @contextlib.contextmanager
    def guarding(self, connection: HTTPConnection) -> Generator[None, None, None]:
        """Closes a connection whose answer was not read: the node stops what it does for it."""
        try:
            yield
        except BaseException as error:
            connection.close()
            if isinstance(error, (OSError, HTTPException)):
                raise self.lost(error) from error
            raise

    def lost(self, reason: object) -> ServerDiedError:
        return ServerDiedError(
            f"the node at {self.address} has ended, or cannot be reached: {reason}",
            f"if it has ended, its sessions are gone; {_NEW_SESSION}",
        )

    def close(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


def read(response: HTTPResponse) -> bytes:
    """Returns the body of an answer.

    Raises:
        ProtocolError: it is too long.
    """
    # With a length, only a read without one notices that the answer breaks off.
    announced = response.length
    if announced is None:
        data = response.read(_MAX_ANSWER_BYTES + 1)
        announced = len(data)
    elif announced <= _MAX_ANSWER_BYTES:
        data = response.read()
    else:
        data = b""
    if announced > _MAX_ANSWER_BYTES:
        raise ProtocolError(f"an answer of the node is longer than {_MAX_ANSWER_BYTES} bytes")
    return data


def events(response: HTTPResponse) -> Iterator[dict[str, Any]]:
    """Yields the events that an answer has, each on a line.

    Raises:
        ProtocolError: a line is no event, or too long.
    """
    while line := response.readline(_MAX_ANSWER_BYTES + 1):
        if len(line) > _MAX_ANSWER_BYTES:
            raise ProtocolError(f"an event of the node is longer than {_MAX_ANSWER_BYTES} bytes")
        event = decode(line)
        if not isinstance(event, dict) or "type" not in event:
            raise ProtocolError(f"the node sent {line[:40]!r}, which is no event")
        yield event


def _no_address(address: str) -> ConfigError:
    hint = "`http://HOST:PORT`, `https://HOST` or `unix:PATH`"
    return ConfigError(f"{address!r} is no address of a node", hint)


class _UnixConnection(HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_CONNECT_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _is_readable(connection: HTTPConnection, seconds: float) -> bool:
    """Waits until there is something to read, for at most this time."""
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _notice_the_end(connection: socket.socket) -> None:
    """Ends the connection when the other machine has vanished. A run may be silent for hours."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        (socket.TCP_KEEPIDLE, _SILENT_SECONDS // 2),
        (socket.TCP_KEEPINTVL, _SILENT_SECONDS // 6),
        (socket.TCP_KEEPCNT, 3),
        (socket.TCP_USER_TIMEOUT, _SILENT_SECONDS * 1000),
    ):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)


def body(value: Any) -> bytes:
    """Returns plain data as the body of a request.

    Raises:
        TransferError: it is too large.
    """
    return small(encode(value))


def small(data: bytes) -> bytes:
    """Returns a body, unless it is too large."""
    if len(data) > _MAX_BODY_BYTES:
        raise TransferError(f"a request has {len(data)} bytes, the limit is {_MAX_BODY_BYTES}")
    return data


def checked(status: int, data: bytes) -> bytes:
    """Returns the body of an answer.

    Raises:
        IsoletError: the request was refused.
    """
    if status >= 300:
        raise refusal(status, data)
    return data


def refusal(status: int, data: bytes) -> IsoletError:
    """Returns why a node, or a proxy before it, has refused a request."""
    try:
        return error_of(decode(data))
    except (IsoletError, TypeError, KeyError):
        shown = data[:200].decode("utf-8", "replace")
        kind = ServerDiedError if status in _BY_PROXIES else IsoletError
        return kind(f"the answer with status {status} is none of a node: {shown!r}")


def error_of(problem: dict[str, Any]) -> IsoletError:
    """Returns the exception for a problem, as `docs/reference/http-api.md` describes it."""
    hint = problem.get("hint")
    if hint is None and problem["status"] in (404, 410):
        hint = _NEW_SESSION
    return from_wire({"kind": problem["code"], "message": problem["detail"], "hint": hint})


def waits(deadline: float) -> bool:
    """Waits for the next round, if there is time."""
    left = deadline - time.monotonic()
    if left > 0:
        # Not all clients at once.
        time.sleep(min(left, _ROUND_SECONDS * random.uniform(0.5, 1)))
    return left > 0
