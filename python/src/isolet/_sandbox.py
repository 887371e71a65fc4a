# Generated from `aio/_sandbox.py` by `cargo xtask generate`: change that file.
"""The sandboxes of the synchronous API."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from . import _session
from ._binding import Binding
from ._keywords import shows
from ._server import Server
from .execution import Execution
from .journal import Journal, StrPath
from .options import DEFAULTS, Inputs, RunOptions
from .policy import Policy
from .session import Session
from .streams import Runs

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


@shows(Policy)
class Sandbox(Binding):
    """A policy, and what sessions of it need. It is cheap, and belongs to no thread or event loop.

    Its server starts, and packages are fetched, when it is needed first. A sandbox need not be
    closed.

    >>> sandbox = isolet.Sandbox(tools=[search], mounts={"/data": "./data"})
    >>> with sandbox.session() as session:
    ...     session.run("print(search(open('/data/query.txt').read()))")

    Args:
        server: the server. By default there is one for the program, and one for each event loop.
        **policy: what guests may do, by the keywords of `isolet.Policy`. All else is denied:

    Raises:
        ConfigError: the policy is invalid. What only the server can see is raised by the first use
            of a session.
    """

    def __init__(self, *, server: Server | None = None, **policy: Unpack[Policy]) -> None:
        super().__init__(server, policy)

    def session(
        self, *, inputs: Inputs | None = None, journal: Journal | StrPath | None = None
    ) -> Session:
        """Opens a session. Returns at once, while the interpreter starts.

        Args:
            inputs: variables by name. They cross as plain data.
            journal: the file that the session is recorded to from its beginning, which must not
                exist. See `Session.record`.

        Raises:
            TransferError: an input cannot cross.
            StartError: the server cannot be started.

        What goes wrong later, such as `LimitError` for too many sessions or `PackagesError`, is
        raised by the first use of the session.
        """
        recorded = None if journal is None else Journal.of(journal)
        return Session(self._open(_session.afresh(inputs, recorded), later=False))

    def restore(self, path: str | os.PathLike[str]) -> Session:
        """Opens a session that `Session.save` has saved to a file. It goes on where it was.

        The file grants nothing: the session has the policy of this sandbox. What goes wrong is
        raised by the first use of the session, as for `session`.

        Args:
            path: the file.

        Raises:
            StartError: the server cannot be started.
        """
        return Session(self._open(_session.restored(path), later=False))

    def resume(self, journal: Journal | StrPath) -> Session:
        """Opens the session of a journal, of which the process has ended. It is as it was when its
        last run began; `Session.go_on` goes on with that. What happens then is recorded, too.

        The journal grants nothing: the session has the policy of this sandbox, which needs the same
        tools, mount points and environment variables as that of the session that was recorded. What
        goes wrong, such as `JournalError`, is raised by the first use of the session.

        Args:
            journal: the file.

        Raises:
            StartError: the server cannot be started.
        """
        return Session(self._open(_session.resumed(Journal.of(journal)), later=False))

    def replay(
        self,
        path: StrPath,
        *,
        until_call: int | None = None,
        until_time: float | None = None,
        until_line: int | tuple[str, int] | None = None,
    ) -> Session:
        """Opens the session of a journal to look back at it. It is as it was when its first run
        began; each `Session.go_on` runs the next one, which prints what it had printed.

        The session reaches nothing of the host, and the journal stays as it is. Of this sandbox
        only the limits count, and where its packages come from. Where the replay stops, code that
        is run sees the variables as they were, and those of the function that was running after
        `Session.bind_locals`. What goes wrong is raised by the first use of the session.

        Args:
            path: the file.
            until_call: the number of a call of a tool, from 1 on: stops where it is made.
            until_time: seconds since the session began: stops then.
            until_line: a line, or `("agent.py", 31)`: stops before that line of any code, or of the
                code in that file.

        Raises:
            StartError: the server cannot be started.
        """
        begun = _session.looked_back(path, until_call, until_time, until_line)
        return Session(self._open(begun, later=False))

    @shows(RunOptions, **DEFAULTS)
    def run(
        self,
        code: str,
        *,
        journal: Journal | StrPath | None = None,
        **options: Unpack[RunOptions],
    ) -> Execution:
        """Runs code in a fresh session, which ends with it, however it ends.

        Args:
            code: Python. The value of its last expression is the result's `value`.
            journal: the file that the run is recorded to, which must not exist. `isolet.resume`
                goes on with it.
            **options: the keywords of `isolet.RunOptions`:

        Raises:
            TransferError: an input cannot cross.
            JournalError: the journal exists, or cannot be written.
            IsoletError: the host failed.
        """
        recorded = None if journal is None else Journal.of(journal)
        inputs = options.pop("inputs", None)
        core = self._open(_session.afresh(inputs, recorded), later=True)
        try:
            return core.run(code, options)
        finally:
            # Whoever goes on with the journal needs it alone.
            core.close(wait=recorded is not None)

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
        return Runs(
            lambda values: self._open(_session.afresh(values), later=True),
            codes,
            given,
            count,
            timeout,
        )

    def prewarm(self, count: int) -> None:
        """Keeps interpreters ready, so that the next sessions start faster. Waits until they are.

        Args:
            count: how many. One that a session takes is replaced in the background. Each takes as
                much memory as an idle session. 0 drops them.

        Raises:
            IsoletError: the sandbox cannot be made.
        """
        self._prewarm(count)

    def close(self) -> None:
        """Forgets the sandbox. Its sessions stay, and it can be used again."""
        self._forget()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
