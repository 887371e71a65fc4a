"""The server process of the asynchronous API."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .._connection import Command
from .._handle import Handle
from ..errors import ConfigError, SessionClosedError
from ._link import Link

if TYPE_CHECKING:
    from typing_extensions import Self


class Server(Handle):
    """A server process, as `isolet.Server`, for the event loop that uses it first.

    Each loop has a server of its own by default. It ends with the loop.

    Args:
        binary: the `isolet` program; found by itself by default.
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
        self._link: weakref.ref[Link] | None = None
        self._loop: weakref.ref[asyncio.AbstractEventLoop] | None = None
        self._is_closed = False

    @property
    def pid(self) -> int | None:
        """The number of the process, or `None` while there is none."""
        link = None if self._link is None else self._link()
        return link.process.pid if link is not None and link.ended is None else None

    def link(self) -> Link:
        """Returns the connection, for the other modules of this package.

        Raises:
            StartError: there is no program, or it cannot be started.
            SessionClosedError: the server was closed.
            ConfigError: the server belongs to another loop, which still runs.
        """
        if self._is_closed:
            raise SessionClosedError("the server was closed", "make another `Server`")
        loop = asyncio.get_running_loop()
        link = None if self._link is None else self._link()
        if link is not None and link.ended is None and not link.process.has_ended():
            own = None if self._loop is None else self._loop()
            if own is loop:
                return link
            if own is not None and not own.is_closed():
                raise ConfigError("the server belongs to another event loop", "make another one")
        link = Link(self._command.line(), self._command.env)
        # The loop keeps it. A server that is kept by its loop must not keep the loop.
        self._link = weakref.ref(link)
        self._loop = weakref.ref(loop)
        return link

    async def close(self) -> None:
        """Ends the server and all of its sessions."""
        self._is_closed = True
        link = None if self._link is None else self._link()
        if link is not None:
            await link.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


_defaults: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Server]
_defaults = weakref.WeakKeyDictionary()


def default_server() -> Server:
    """Returns the server of the running loop."""
    loop = asyncio.get_running_loop()
    server = _defaults.get(loop)
    if server is None:
        server = _defaults[loop] = Server()
    return server
