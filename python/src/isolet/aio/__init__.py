"""The names of `isolet` for asyncio: `await isolet.aio.run("40 + 2")`.

There are no threads: the running event loop reads what the server writes. Each loop has a server of
its own, which ends with it.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import weakref
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .._connection import Registration
from .._handle import Handle
from .._values import variables
from ..errors import IsoletError
from ..policy import Compiled, Policy
from ._core import Core
from ._link import Link
from ._server import Server, default_server
from .session import Files, Session
from .streams import Runs, Stream

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from ..execution import Execution

__all__ = ["Files", "Runs", "Sandbox", "Server", "Session", "Stream", "run"]

Inputs = Mapping[str, Any]


async def run(
    code: str,
    *,
    inputs: Inputs | None = None,
    timeout: float | None = None,
    server: Server | None = None,
    **policy: Unpack[Policy],
) -> Execution:
    """Runs code in a fresh session, which ends with it: as `isolet.run`.

    >>> (await isolet.aio.run("40 + x", inputs={"x": 2})).value
    42

    Raises:
        TransferError: an input cannot cross.
        IsoletError: the host failed.
        CancelledError: the task was cancelled. The session has ended.
    """
    async with Sandbox(server=server, **policy) as sandbox:
        return await sandbox.run(code, inputs=inputs, timeout=timeout)


class Sandbox(Handle):
    """A policy, and what sessions of it need: as `isolet.Sandbox`. It belongs to no loop.

    >>> async with isolet.aio.Sandbox(tools=[search]).session() as session:
    ...     await session.run("hits = await search.aio('cats')")

    Args:
        server: the server; one for each event loop by default.
        **policy: what guests may do: see `isolet.Policy`. Everything else is denied.

    Raises:
        ConfigError: the policy is invalid. What only the server can see is raised by the first use
            of a session.
    """

    def __init__(self, *, server: Server | None = None, **policy: Unpack[Policy]) -> None:
        self._policy = Compiled(policy)
        self._server = server
        # Neither the connection nor the loop must live as long as a sandbox of a module.
        self._link: weakref.ref[Link] | None = None
        self._registration: Registration[asyncio.Future[Any]] | None = None

    def session(self, *, inputs: Inputs | None = None) -> Session:
        """Opens a session. Returns at once, while the interpreter starts.

        Use it as `session = await sandbox.session()`, which waits until it is open, or as `async
        with sandbox.session() as session`.

        Args:
            inputs: variables by name. They cross as plain data.

        Raises:
            TransferError: an input cannot cross.
            StartError: the server cannot be started.
        """
        return Session(self._open(inputs, later=False))

    def restore(self, path: str | os.PathLike[str]) -> Session:
        """Opens a session that was saved to a file: as `isolet.Sandbox.restore`.

        Use it as `session = await sandbox.restore(path)`, which waits until it is open, or as
        `async with sandbox.restore(path) as session`.

        Args:
            path: the file.

        Raises:
            StartError: the server cannot be started.
        """
        return Session(self._open(None, later=False, saved=os.path.abspath(path)))

    async def run(
        self, code: str, *, inputs: Inputs | None = None, timeout: float | None = None
    ) -> Execution:
        """Runs code in a fresh session, which ends with it: as `isolet.Sandbox.run`.

        If the task is cancelled, the session ends at once.
        """
        core = self._open(inputs, later=True)
        try:
            return await Session(core).run(code, timeout=timeout)
        finally:
            await core.close(wait=False)

    def map(
        self,
        codes: Iterable[str],
        inputs: Iterable[Inputs | None] | None = None,
        concurrency: int | None = None,
        *,
        timeout: float | None = None,
    ) -> Runs:
        """Runs many codes, each in a fresh session, several at once: as `isolet.Sandbox.map`.

        `async for execution in sandbox.map(codes)` yields the results in the order of the codes.
        """

        async def run(code: str, values: Inputs | None) -> Execution:
            return await self.run(code, inputs=values, timeout=timeout)

        given = itertools.repeat(None) if inputs is None else inputs
        return Runs(run, codes, given, concurrency or len(os.sched_getaffinity(0)))

    async def prewarm(self, count: int) -> None:
        """Keeps interpreters ready, so that the next sessions start faster. Waits until they are.

        Args:
            count: how many. One that a session takes is replaced in the background. Each takes as
                much memory as an idle session. 0 drops them.

        Raises:
            IsoletError: the sandbox cannot be made.
        """
        link, registration = self._bind(later=False)
        try:
            await link.request("prewarm", registration.number, count)
        except IsoletError:
            await asyncio.shield(registration.made)
            raise

    async def close(self) -> None:
        """Forgets the sandbox. Its sessions stay, and it can be used again."""
        self._link = self._registration = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _bind(self, later: bool) -> tuple[Link, Registration[asyncio.Future[Any]]]:
        """Makes the sandbox known to the server, if it is not or there is another one by now."""
        link = (self._server or default_server()).link()
        known = None if self._link is None else self._link()
        registration = self._registration
        if known is not link or registration is None:
            number = link.number()
            if self._policy.on_audit is not None:
                link.audits[number] = self._policy.on_audit
            made = link.request("sandbox", number, self._policy.wire, later=later)
            registration = Registration(link, number, made)
            self._link, self._registration = weakref.ref(link), registration
        return link, registration

    def _open(self, inputs: Inputs | None, later: bool, saved: str | None = None) -> Core:
        plain = variables(inputs) if inputs else None
        link, registration = self._bind(later)
        return Core(link, self._policy.tools, registration, plain, later, saved=saved)
