"""The synchronous API: `run`, `Sandbox`, `Session`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ._connection import Registration
from ._core import Core
from ._handle import Handle
from ._link import Box, Link
from ._runs import ask
from ._server import Server, default_server
from ._values import variables
from .errors import IsoletError
from .execution import Execution
from .policy import Compiled, Policy
from .session import Session
from .streams import Runs

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

Inputs = Mapping[str, Any]


def run(
    code: str,
    *,
    inputs: Inputs | None = None,
    timeout: float | None = None,
    server: Server | None = None,
    **policy: Unpack[Policy],
) -> Execution:
    """Runs code in a fresh session, which ends with it.

    >>> isolet.run("40 + x", inputs={"x": 2}).value
    42

    Args:
        code: Python. The value of its last expression is the result's `value`.
        inputs: variables by name. They cross as plain data.
        timeout: the most seconds that the run may take, at most the limit `run_time`.
        server: the server; one for the whole program by default.
        **policy: what the code may do, as for `Sandbox`; see `Policy`. Without one: nothing but
            compute, for 30 seconds and in 1 GiB of memory.

    Returns:
        What the code did. It tells of exceptions and timeouts too: `raise_for_error` raises them.

    Raises:
        TransferError: an input cannot cross.
        IsoletError: the host failed.
        Interrupted: Ctrl-C was pressed.
    """
    if server is None and not policy:
        return _bare.run(code, inputs=inputs, timeout=timeout)
    with Sandbox(server=server, **policy) as sandbox:
        return sandbox.run(code, inputs=inputs, timeout=timeout)


class Sandbox(Handle):
    """A policy, and what sessions of it need. It is cheap, and can be used by any thread.

    Its server starts, and packages are fetched, when it is needed first. A sandbox need not be
    closed.

    >>> with isolet.Sandbox(tools=[search], mounts={"/data": "./data"}).session() as session:
    ...     session.run("print(search(open('/data/query.txt').read()))")

    Args:
        server: the server; one for the whole program by default.
        **policy: what guests may do, by the keywords of `Policy`: `tools`, `submit`, `mounts`,
            `allow_net`, `env`, `packages`, `limits` and others. Everything else is denied.

    Raises:
        ConfigError: the policy is invalid. What only the server can see is raised by the first use
            of a session.
    """

    def __init__(self, *, server: Server | None = None, **policy: Unpack[Policy]) -> None:
        self._policy = Compiled(policy)
        self._server = server or default_server()
        self._link: Link | None = None
        self._registration: Registration[Box] | None = None

    def session(self, *, inputs: Inputs | None = None) -> Session:
        """Opens a session. Returns at once, while the interpreter starts.

        Args:
            inputs: variables by name. They cross as plain data.

        Raises:
            TransferError: an input cannot cross.
            StartError: the server cannot be started.

        What goes wrong later, such as `LimitError` for too many sessions or `PackagesError`, is
        raised by the first use of the session.
        """
        return Session(self._open(inputs, later=False))

    def restore(self, path: str | os.PathLike[str]) -> Session:
        """Opens a session that `Session.save` has saved to a file. It goes on where it was.

        The file grants nothing: the session has the policy of this sandbox. What goes wrong is
        raised by the first use of the session, as for `session`.

        Args:
            path: the file.

        Raises:
            StartError: the server cannot be started.
        """
        return Session(self._open(None, later=False, saved=os.path.abspath(path)))

    def run(
        self, code: str, *, inputs: Inputs | None = None, timeout: float | None = None
    ) -> Execution:
        """Runs code in a fresh session, which ends with it: as `isolet.run`, with this policy.

        Args:
            code: Python. The value of its last expression is the result's `value`.
            inputs: variables by name. They cross as plain data.
            timeout: the most seconds that the run may take, at most the limit `run_time`.

        Raises:
            TransferError: an input cannot cross.
            IsoletError: the host failed.
        """
        core = self._open(inputs, later=True)
        try:
            return Session(core).run(code, timeout=timeout)
        finally:
            core.close(wait=False)

    def map(
        self,
        codes: Iterable[str],
        inputs: Iterable[Inputs | None] | None = None,
        concurrency: int | None = None,
        *,
        timeout: float | None = None,
    ) -> Runs:
        """Runs many codes, each in a fresh session, several at once.

        Yields the results in the order of the codes. Later runs go on while the program uses an
        earlier result. If it stops early, the runs under way are ended.

        Args:
            codes: the codes.
            inputs: the variables of each code.
            concurrency: how many run at once; by default as many as there are processors.
            timeout: the most seconds that each may take, at most the limit `run_time`.

        Raises:
            IsoletError: the host failed. The other runs are ended.
        """
        given = itertools.repeat(None) if inputs is None else inputs
        count = concurrency or len(os.sched_getaffinity(0))
        return Runs(lambda values: self._open(values, later=True), codes, given, count, timeout)

    def prewarm(self, count: int) -> None:
        """Keeps interpreters ready, so that the next sessions start faster. Waits until they are.

        Args:
            count: how many. One that a session takes is replaced in the background. Each takes as
                much memory as an idle session. 0 drops them.

        Raises:
            IsoletError: the sandbox cannot be made.
        """
        link, registration = self._bind(later=False)
        box = Box()
        link.request(box, "prewarm", registration.number, count)
        try:
            ask(link, box)
        except IsoletError:
            ask(link, registration.made)
            raise

    def close(self) -> None:
        """Forgets the sandbox. Its sessions stay, and it can be used again."""
        with self._server.lock:
            self._link = self._registration = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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

    def _open(self, inputs: Inputs | None, later: bool, saved: str | None = None) -> Core:
        plain = variables(inputs) if inputs else None
        link, registration = self._bind(later)
        return Core(link, self._policy.tools, registration, plain, later, saved=saved)


# For runs without a policy.
_bare = Sandbox()
