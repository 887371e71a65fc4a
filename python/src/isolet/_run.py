"""`isolet.run`, `isolet.resume` and `isolet.replay`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from . import _session
from ._keywords import shows
from ._sandbox import Sandbox
from ._server import Server
from .execution import Display, Execution
from .journal import Journal, StrPath
from .options import DEFAULTS, FreshRun, OutputCallbacks, RunOptions, split
from .policy import Policy

if TYPE_CHECKING:
    from typing_extensions import Unpack


@shows(RunOptions, Policy, **DEFAULTS)
def run(
    code: str,
    *,
    journal: Journal | StrPath | None = None,
    server: Server | None = None,
    **options: Unpack[FreshRun],
) -> Execution:
    """Runs code in a fresh session, which ends with it.

    >>> isolet.run("40 + x", inputs={"x": 2}).value
    42

    Args:
        code: Python. The value of its last expression is the result's `value`.
        journal: the file that the run is recorded to, which must not exist. If this process ends,
            `resume` goes on with it in another one.
        server: the server; one for the whole program by default.
        **options: the keywords of `isolet.RunOptions`, and of `isolet.Policy` for what the code may
            do. Without one of these: nothing but compute, for 30 seconds and in 1 GiB of memory:

    Returns:
        What the code did. It tells of exceptions and timeouts too: `raise_for_error` raises them.

    Raises:
        TransferError: an input cannot cross.
        JournalError: the journal exists, or cannot be written.
        IsoletError: the host failed.
        Interrupted: Ctrl-C was pressed.
    """
    run, policy = split(options, "run")
    if server is None and not policy:
        return _bare.run(code, journal=journal, **run)
    # Nothing runs after it.
    policy.setdefault("checkpoint", False)
    with Sandbox(server=server, **policy) as sandbox:
        return sandbox.run(code, journal=journal, **run)


@shows(Policy)
def resume(
    journal: Journal | StrPath,
    *,
    on_stdout: Callable[[str], object] | None = None,
    on_stderr: Callable[[str], object] | None = None,
    on_display: Callable[[Display], object] | None = None,
    server: Server | None = None,
    **policy: Unpack[Policy],
) -> Execution:
    """Goes on with the last run of a journal, whose process has ended; then ends the session.

    Nothing that is recorded is done again: no call of a tool, no request, no change of a file. See
    `Session.go_on`. A run that had ended gives its result once more.

    >>> isolet.run(code, tools=[search], journal="run.journal")  # this process is killed
    >>> isolet.resume("run.journal", tools=[search]).value  # in another one

    Args:
        journal: the file that `run` or a session was recorded to.
        on_stdout: called with each piece of the standard output, from the beginning of the run on.
        on_stderr: the same for the standard error.
        on_display: called with each picture, table and other rich result.
        server: the server; one for the whole program by default.
        **policy: what the code may do from here on, as for `Sandbox`, with the same tools, mount
            points and environment variables as when it was recorded.

    Returns:
        What the whole run did, with all of its output.

    Raises:
        JournalError: the journal cannot be used, has no run, or the code does something else than
            when it was recorded.
        IsoletError: the host failed.
        Interrupted: Ctrl-C was pressed.
    """
    recorded = Journal.of(journal)
    with Sandbox(server=server, **policy) as sandbox, sandbox.resume(recorded) as session:
        execution = session.go_on(on_stdout=on_stdout, on_stderr=on_stderr, on_display=on_display)
    if execution is None:
        raise _session.no_run(recorded)
    return execution


@shows(Policy)
def replay(
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
    """Looks back at the runs of a journal: they print again what they had printed.

    Nothing of the host is touched, and the journal stays as it is. `Sandbox.replay` gives the
    session, with its variables.

    Args:
        path: the file.
        until_call: the number of a call of a tool, from 1 on: stops where it is made.
        until_time: seconds since the session began: stops then.
        until_line: a line, or `("agent.py", 31)`: stops before that line of any code, or of the
            code in that file.
        on_stdout: called with each piece of the standard output.
        on_stderr: the same for the standard error.
        on_display: called with each picture, table and other rich result.
        server: the server; one for the whole program by default.
        **policy: the limits, and what says where packages come from, as for `Sandbox`. Tools and
            mounts are not needed.

    Returns:
        What the last run did. One that was stopped has the status `interrupted`.

    Raises:
        JournalError: the journal cannot be used or has no run.
        IsoletError: the host failed.
        Interrupted: Ctrl-C was pressed.
    """
    execution = None
    with (
        Sandbox(server=server, **policy) as sandbox,
        sandbox.replay(
            path, until_call=until_call, until_time=until_time, until_line=until_line
        ) as session,
    ):
        callbacks: OutputCallbacks
        callbacks = {"on_stdout": on_stdout, "on_stderr": on_stderr, "on_display": on_display}
        while (found := session.go_on(**callbacks)) is not None:
            execution = found
    if execution is None:
        raise _session.no_run(Journal(path), until_time)
    return execution


# For runs without a policy.
_bare = Sandbox(checkpoint=False)
