"""The server process of the synchronous API."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Mapping

from ._connection import Command
from ._handle import Handle
from ._link import Link
from .errors import SessionClosedError

_CLOSING_SECONDS = 2.0


class Server(Handle):
    """A server process, `isolet serve --stdio`, which runs the sessions of any number of sandboxes.

    It starts when it is needed first, and again when it has died. Sandboxes share one, unless they
    are given another. It ends with the program.

    Args:
        binary: the `isolet` program; by default the one of the variable `ISOLET_BIN`, or of this
            environment, or on `PATH`.
        assets: the directory with the files of the interpreter; found by the program by default.
        max_sessions: how many sessions may be open; 10,000 by default. A further one is a
            `LimitError`.
        env: the environment variables of the server; those of this process by default.
    """

    def __init__(
        self,
        binary: str | os.PathLike[str] | None = None,
        *,
        assets: str | os.PathLike[str] | None = None,
        max_sessions: int | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._command = Command(binary, assets, max_sessions, env)
        self.lock = threading.RLock()
        """Locked while it starts, and while sandboxes are made known to it."""
        self._link: Link | None = None
        self._closed = False
        _servers.add(self)

    @property
    def pid(self) -> int | None:
        """The number of the process, or `None` while there is none."""
        link = self._link
        return link.process.pid if link is not None and link.ended is None else None

    def link(self) -> Link:
        """Returns the connection, for the other modules of this package.

        Raises:
            StartError: there is no program, or it cannot be started.
            SessionClosedError: the server was closed.
        """
        with self.lock:
            if self._closed:
                raise SessionClosedError("the server was closed", "make another `Server`")
            if self._link is None or self._link.has_died():
                self._link = Link(self._command.line(), self._command.env)
            return self._link

    def close(self) -> None:
        """Ends the server and all of its sessions."""
        with self.lock:
            self._closed = True
            if self._link is not None:
                self._link.close(_CLOSING_SECONDS)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def default_server() -> Server:
    """Returns the server of sandboxes that are given none."""
    return _default


_servers: weakref.WeakSet[Server] = weakref.WeakSet()
_default = Server()


def _after_fork() -> None:
    for server in list(_servers):
        # Another thread of the parent may have held it.
        server.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
