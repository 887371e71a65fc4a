"""How a sandbox of the synchronous API is known to its server."""

from __future__ import annotations

from ._connection import Registration
from ._core import Core
from ._handle import Handle
from ._link import Box, Link
from ._runs import ask
from ._server import Server, default_server
from ._session import Beginning
from .errors import IsoletError
from .policy import Compiled, Policy


class Binding(Handle):
    """Makes a policy known to its server. Any thread can use it."""

    def __init__(self, server: Server | None, policy: Policy) -> None:
        self._policy = Compiled(policy)
        self._server = server or default_server()
        self._link: Link | None = None
        self._registration: Registration[Box] | None = None

    def _forget(self) -> None:
        with self._server.lock:
            self._link = self._registration = None

    def _prewarm(self, count: int) -> None:
        link, registration = self._bind(later=False)
        box = Box()
        link.request(box, "prewarm", registration.number, count)
        try:
            ask(link, box)
        except IsoletError:
            ask(link, registration.made)
            raise

    def _bind(self, later: bool) -> tuple[Link, Registration[Box]]:
        """Makes the sandbox known to the server, if it is not or there is another one by now."""
        with self._server.lock:
            link, registration = self._link, self._registration
            if link is None or registration is None or link.has_died():
                link = self._server.link()
                registration = Registration(link, link.number(), Box())
                if self._policy.on_audit is not None:
                    link.audits[registration.number] = self._policy.on_audit
                policy = self._policy.wire
                link.request(registration.made, "sandbox", registration.number, policy, later=later)
                self._link, self._registration = link, registration
            return link, registration

    def _open(self, beginning: Beginning, later: bool) -> Core:
        link, registration = self._bind(later)
        return Core(link, self._policy.tools, registration, beginning, later)
