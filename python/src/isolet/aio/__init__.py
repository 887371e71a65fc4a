"""The names of `isolet` for asyncio: `await isolet.aio.run("40 + 2")`.

There are no threads: the running event loop reads what the server writes. Each loop has a server of
its own, which ends with it. `await sandbox.session()` waits until the session is open, and `async
with sandbox.session() as session` closes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .. import _session
from .._keywords import shows
from ..execution import Display
from ..journal import Journal, StrPath
from ..options import DEFAULTS, FreshRun, OutputCallbacks, RunOptions, split
from ..policy import Policy
from ._sandbox import Sandbox
from ._server import Server
from .session import Files, Session
from .streams import Runs, Stream

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..execution import Execution

__all__ = ["Files", "Runs", "Sandbox", "Server", "Session", "Stream", "replay", "resume", "run"]


@shows(RunOptions, Policy, **DEFAULTS)
async def run(
    code: str,
    *,
    journal: Journal | StrPath | None = None,
    server: Server | None = None,
    **options: Unpack[FreshRun],
) -> Execution:
    """Runs code in a fresh session, which ends with it: as `isolet.run`.

    >>> (await isolet.aio.run("40 + x", inputs={"x": 2})).value
    42

    Raises:
        TransferError: an input cannot cross.
        IsoletError: the host failed.
        CancelledError: the task was cancelled. The session has ended.
    """
    run, policy = split(options, "run")
    async with Sandbox(server=server, **policy) as sandbox:
        return await sandbox.run(code, journal=journal, **run)


@shows(Policy)
async def resume(
    journal: Journal | StrPath,
    *,
    on_stdout: Callable[[str], object] | None = None,
    on_stderr: Callable[[str], object] | None = None,
    on_display: Callable[[Display], object] | None = None,
    server: Server | None = None,
    **policy: Unpack[Policy],
) -> Execution:
    """Goes on with the last run of a journal, whose process has ended: as `isolet.resume`.

    Raises:
        JournalError: the journal cannot be used, has no run, or the code does something else than
            when it was recorded.
        IsoletError: the host failed.
        CancelledError: the task was cancelled. The journal can be resumed again.
    """
    recorded = Journal.of(journal)
    async with Sandbox(server=server, **policy) as sandbox, sandbox.resume(recorded) as session:
        execution = await session.go_on(
            on_stdout=on_stdout, on_stderr=on_stderr, on_display=on_display
        )
    if execution is None:
        raise _session.no_run(recorded)
    return execution


@shows(Policy)
async def replay(
    path: StrPath,
    *,
    until_call: int | None = None,
    until_time: float | None = None,
    until_line: int | tuple[str, int] | None = None,
    on_stdout: Callable[[str], object] | None = None,
    on_stderr: Callable[[str], object] | None = None,
    on_display: Callable[[Display], object] | None = None,
    server: Server | None = None,
    **policy: Unpack[Policy],
) -> Execution:
    """Looks back at the runs of a journal: as `isolet.replay`.

    Raises:
        JournalError: the journal cannot be used or has no run.
        IsoletError: the host failed.
        CancelledError: the task was cancelled.
    """
    execution = None
    async with (
        Sandbox(server=server, **policy) as sandbox,
        sandbox.replay(
            path, until_call=until_call, until_time=until_time, until_line=until_line
        ) as session,
    ):
        callbacks: OutputCallbacks
        callbacks = {"on_stdout": on_stdout, "on_stderr": on_stderr, "on_display": on_display}
        while (found := await session.go_on(**callbacks)) is not None:
            execution = found
    if execution is None:
        raise _session.no_run(Journal(path), until_time)
    return execution
