"""How a sandbox of the asynchronous API is known to its server."""

from __future__ import annotations

import asyncio
import weakref
from typing import Any

from .._connection import Registration
from .._handle import Handle
from .._session import Beginning
from ..errors import IsoletError
from ..policy import Compiled, Policy
from ._core import Core
from ._link import Link
from ._server import Server, default_server


class Binding(Handle):
    """Makes a policy known to the server of the running loop. It belongs to no loop."""

    def __init__(self, server: Server | None, policy: Policy) -> None:
        self._policy = Compiled(policy)
        self._server = server
        # Neither the connection nor the loop must live as long as a sandbox of a module.
        self._link: weakref.ref[Link] | None = None
        self._registration: Registration[asyncio.Future[Any]] | None = None

    def _forget(self) -> None:
        self._link = self._registration = None

    async def _prewarm(self, count: int) -> None:
        link, registration = self._bind(later=False)
        try:
            await link.request("prewarm", registration.number, count)
        except IsoletError:
            await asyncio.shield(registration.made)
            raise

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

    def _open(self, beginning: Beginning, later: bool) -> Core:
        link, registration = self._bind(later)
        return Core(link, self._policy.tools, registration, beginning, later)
