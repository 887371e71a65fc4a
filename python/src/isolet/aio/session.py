"""The sessions of the asynchronous API. Those of the synchronous one are generated from it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .. import _session
from .._keywords import shows
from .._values import text, to_plain, variables
from ..errors import TransferError
from ..execution import Execution, FileEntry, Package, StoppedAt, Variable
from ..journal import Journal, StrPath
from ..options import DEFAULTS, Inputs, OutputCallbacks, RunOptions, StreamOptions, of_stream
from ..policy import submit_to_wire
from ..tools import Submit, Tool, collect
from ._core import Core, contents
from ._session_base import SessionBase
from .streams import Stream

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class Session(SessionBase):
    """One interpreter, which keeps its variables from run to run. `Sandbox.session` opens it.

    It runs one code at a time. If it is dropped without `close`, it is closed some time later.
    """

    @shows(RunOptions, **DEFAULTS)
    async def run(
        self,
        code: str,
        *,
        journal: Journal | StrPath | None = None,
        **options: Unpack[RunOptions],
    ) -> Execution:
        """Runs code, and returns what it did.

        An exception of the code, a timeout or another end is part of the result:
        `raise_for_error` raises it. Ctrl-C interrupts the guest, and so does the cancellation of a
        task. If the guest stops within the limit `grace`, the session goes on, otherwise it is
        closed; then `Interrupted` is raised, or the task is cancelled. A second Ctrl-C or
        cancellation closes the session at once.

        Args:
            code: Python. `await` is allowed, and the value of a last expression is the result's.
                At most as long as the limit `source`.
            journal: the file that the session is recorded to from here on, as by `record`. One that
                it is recorded to already is gone on with.
            **options: the keywords of `isolet.RunOptions`:

        Raises:
            TransferError: an input cannot cross.
            BusyError: the session runs code already.
            SessionClosedError: the session has ended.
            LimitError: the code is too long, or too many sessions are open.
            ServerDiedError: the server has ended, and the session with it.
            JournalError: the journal cannot be written.
            IsoletError: the host failed in another way.
            BaseException: a callback has raised it, or a tool, unless it is an `Exception`: those
                go to the guest.
        """
        return await self._core.run(code, options, _journal(journal))

    @shows(RunOptions, **DEFAULTS)
    async def eval(
        self,
        code: str,
        *,
        journal: Journal | StrPath | None = None,
        **options: Unpack[RunOptions],
    ) -> Any:
        """Runs code and returns its value, or raises why there is none.

        Args:
            code: Python.
            journal: that of `run`.
            **options: those of `run`.

        Raises:
            GuestError: the code failed. `GuestTimeoutError`: it did not end in time.
            TransferError: the value cannot cross: it is no plain data, or larger than the limit
                `value`.
            IsoletError: what `run` raises.
        """
        execution = await self.run(code, journal=journal, **options)
        execution.raise_for_error()
        if execution.value_error is not None:
            raise TransferError(execution.value_error)
        return execution.value

    @shows(StreamOptions, **DEFAULTS)
    def stream(
        self,
        code: str,
        *,
        journal: Journal | StrPath | None = None,
        **options: Unpack[StreamOptions],
    ) -> Stream:
        """Runs code, and yields what it writes and displays as it comes; last, the `Execution`.

        The run starts with the iteration at the latest. A guest that writes faster than its output
        is taken has to wait. If the iteration is left early, the run is interrupted.

        >>> async for item in session.stream(code):
        ...     if isinstance(item, isolet.Output):
        ...         print(item, end="")

        Args:
            code: Python.
            journal: that of `run`.
            **options: those of `run`, without the callbacks.

        Raises:
            TransferError, BusyError, SessionClosedError, IsoletError: as with `run`.
        """
        inputs, wire = options.get("inputs"), of_stream(options)
        return Stream(self._core, code, inputs, wire, _journal(journal))

    @shows(RunOptions, **DEFAULTS)
    async def sh(
        self,
        script: str,
        *,
        journal: Journal | StrPath | None = None,
        **options: Unpack[RunOptions],
    ) -> Execution:
        """Runs a script in the session's shell, as bash would, and returns what it did.

        `exit_code` of the result is the script's status, and `ok` whether it is 0. The shell is
        code of the guest: it starts no process, and works on the guest's files. Scripts share
        their variables and functions, and with Python the working directory and the environment.

        >>> (await session.sh("ls *.csv | wc -l")).stdout

        Args:
            script: one or several commands.
            journal: that of `run`.
            **options: those of `run`. `inputs` are exported variables, texts or numbers; `argv` is
                `$1` and so on; `program` gives the script a shell of its own, as `bash -c` does.

        Raises:
            IsoletError: what `run` raises.
        """
        wire: RunOptions = {**options, "syntax": "shell"}
        return await self._core.run(script, wire, _journal(journal))

    async def get(self, name: str, default: Any = None) -> Any:
        """Returns a variable as plain data. Works while code runs.

        Args:
            name: the name of a variable.
            default: what is returned if there is none.

        Raises:
            TransferError: the value cannot cross: it is no plain data, or larger than the limit
                `value`.
        """
        found = await self._core.ask("get", text(name, "name"))
        return found[0] if found else default

    async def set(self, values: Inputs) -> None:
        """Sets variables: all of them, or none.

        Args:
            values: the values by name: None, bool, int, float, str, bytes, and lists, dicts and
                dataclasses of them, in all at most as large as the limit `value`.

        Raises:
            TransferError: one cannot cross, or a name is no identifier of Python.
            BusyError: code runs.
        """
        await self._core.ask("set", variables(values, "values"))

    async def delete(self, name: str) -> bool:
        """Deletes the variable `name`. Returns whether there was one."""
        return await self._core.ask("delete", text(name, "name"))

    async def variables(self) -> list[Variable]:
        """Returns the variables of the guest, each with its type and `repr`. Works while code runs.

        A `repr` is cut after 500 characters.
        """
        return _session.variable_list(await self._core.ask("variables"))

    @property
    def files(self) -> Files:
        """The files that the guest sees."""
        return Files(self._core)

    async def register(self, *tools: Callable[..., Any] | Tool) -> None:
        """Gives the guest further tools, or replaces some.

        Args:
            *tools: functions of the host. `isolet.tool` has settings for them.

        Raises:
            ConfigError: one is no function, or two have the same name.
            BusyError: code runs.
        """
        made = collect(tools)
        wire = [each.to_wire() for each in made.values()]
        self._core.tools.update(made)
        await self._core.ask("register", to_plain(wire, "tools"))

    async def set_submit(self, fields: Mapping[str, Any] | Submit) -> None:
        """Gives the guest `SUBMIT(...)`, or changes it.

        Args:
            fields: the type of each argument by name; or a `Submit`, which also names the function.

        Raises:
            ConfigError: a name is no identifier of Python.
            BusyError: code runs.
        """
        await self._core.ask("submit", to_plain(submit_to_wire(fields), "fields"))

    async def load_packages(self, *requirements: str) -> list[Package]:
        """Loads packages. Returns those that were not loaded before.

        Args:
            *requirements: such as `pydantic` or `rich>=13`. The host fetches them, whatever the
                policy allows the guest.

        Raises:
            PackagesError: one cannot be found, or conflicts with one that is loaded. The session
                goes on.
            BusyError: code runs.
        """
        found = await self._core.ask("load_packages", _session.requirements(requirements))
        return _session.package_list(found)

    async def interrupt(self) -> None:
        """Raises `KeyboardInterrupt` in the code that runs, if any does.

        For other threads or tasks.
        """
        await self._core.ask("interrupt")

    async def reset(self) -> None:
        """Starts a fresh interpreter under the same policy, without variables and files.

        Works after a limit or an interrupt has ended the session. It is not recorded.

        Raises:
            SessionClosedError: the session was closed with `close`.
        """
        self._core.report = await self._core.ask("reset")
        self._core.is_dead = False
        self._core.journal = None

    async def checkpoint(self) -> None:
        """Keeps the state now, to go on from it after a run that has ended the interpreter.

        Otherwise the state is kept in the background, once the session has been idle for a moment.

        Raises:
            ConfigError: the policy says `checkpoint=False`, or the state cannot be kept: it takes
                more than 16 MiB, or a thread runs, for example. The session keeps its earlier one.
            BusyError: code runs.
        """
        await self._core.ask("checkpoint")

    async def fork(self) -> Session:
        """Returns a second session that has all that this one has: variables, modules, files.

        From then on the two are apart. The policy has to say `forkable`. The copy has the tools of
        this session, and lives until it is closed, also after this one. As with `os.fork`,
        functions of `os.register_at_fork` run, and `random` is seeded anew.

        Raises:
            ConfigError: the policy does not say `forkable`.
            BusyError: code runs.
            SessionClosedError: the session has ended.
            LimitError: there are too many sessions, or copies of this one.
        """
        copies = await self.fork_many(1)
        return copies[0]

    async def fork_many(self, copies: int) -> list[Session]:
        """Returns several copies, as `fork` does.

        Args:
            copies: how many.
        """
        return [Session(core) for core in await self._core.fork(copies)]

    async def save(self, path: str | os.PathLike[str]) -> None:
        """Saves the session to a file, from which `Sandbox.restore` makes one that goes on.

        That works in another process and on another machine with the same version of isolet. The
        file has all that the guest has, and only its owner may read it. The session stays as it is.

        Args:
            path: the file. An existing one is replaced.

        Raises:
            TransferError: the guest has what cannot be saved, such as threads, open connections,
                or objects of JavaScript. The message says what, and where it is held.
            ConfigError: the file cannot be written.
            BusyError: code runs.
            SessionClosedError: the session has ended.
        """
        await self._core.ask("save", _session.host_path(path))

    async def record(self, journal: Journal | StrPath) -> None:
        """Records the session from here on: everything that the host tells it.

        If this process ends, however it does, `Sandbox.resume` has the session go on in another
        one, which makes no call of a tool a second time. The journal begins with the session as
        `save` writes it; that of `Sandbox.session` with `journal` has none of that. A recorded
        session cannot be forked or saved and has no checkpoints, and its threads and tasks get
        answers one at a time. Does nothing if it is recorded to this journal already.

        Args:
            journal: the file, which must not exist.

        Raises:
            JournalError: the file exists, or cannot be written.
            ConfigError: the session is recorded to another journal, or the policy says `forkable`.
            TransferError: the guest has what cannot be saved, as for `save`.
            BusyError: code runs.
            SessionClosedError: the session has ended.
        """
        await self._core.record(Journal.of(journal))

    async def end_recording(self) -> None:
        """Records the session no longer. Its journal can still be resumed, from here."""
        await self._core.end_recording()

    @shows(OutputCallbacks)
    async def go_on(self, **callbacks: Unpack[OutputCallbacks]) -> Execution | None:
        """Goes on with the last run of the journal that `Sandbox.resume` has opened: again as far
        as it is recorded, and from there on as it goes. Until then the session does nothing else.

        In a session of `Sandbox.replay`, each call runs the next run.

        Calls of tools that are recorded are not made again. One that was under way is, with the
        same `isolet.call_id()`, if its tool is idempotent; otherwise the guest gets the exception
        `CallInterrupted`.

        Args:
            **callbacks: what to call:

        Returns:
            What the whole run did, with all of its output; `None` if there is no run to go on with.

        Raises:
            JournalError: the journal cannot be used, or the code does something else than when it
                was recorded.
            IsoletError: what `run` raises.
        """
        return await self._core.go_on(callbacks)

    async def bind_locals(self) -> StoppedAt | None:
        """Binds the local variables of the function in which `Sandbox.replay` has stopped a run, so
        that code that is run then sees them. Returns where that is; `None` if no run was stopped.
        """
        return _session.stopped_at(await self._core.ask("bind_locals"))

    async def close(self, *, wait: bool = True) -> None:
        """Ends the session for good, and a run in it. Does nothing if it has ended.

        Args:
            wait: whether to return only when it has ended.
        """
        await self._core.close(wait)

    @property
    def id(self) -> int:
        """The number of the session on its server, as `session` of audit events."""
        return self._core.number

    @property
    def alive(self) -> bool:
        """Whether the session can run code, as far as is known."""
        return self._core.is_alive

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _journal(journal: Journal | StrPath | None) -> Journal | None:
    return None if journal is None else Journal.of(journal)


class Files:
    """The files of a session, those of its mounts too. Relative ones are in `/home/user`.

    A file that crosses may be as large as the limit `value`, 256 MiB by default.
    """

    def __init__(self, core: Core) -> None:
        """Use `Session.files`."""
        self._core = core

    async def put(self, path: str | os.PathLike[str], data: str | bytes | os.PathLike[str]) -> None:
        """Writes a file, and makes its directory.

        Args:
            path: where the guest sees it.
            data: a text, which is written as UTF-8; bytes; or the `Path` of a file of the host,
                which is copied.

        Raises:
            OSError: it cannot be written, such as `IsADirectoryError` or `PermissionError`; or the
                file of the host cannot be read.
            TransferError: it is larger than the limit `value`.
            BusyError: code runs.
        """
        at, content = _session.guest_path(path), await contents(data)
        with _session.files_of(os.fspath(path)):
            await self._core.ask("put_file", at, content)

    async def get(self, path: str | os.PathLike[str]) -> bytes:
        """Returns what the file `path` contains.

        Raises:
            FileNotFoundError: there is no such file.
            OSError: it cannot be read, such as `IsADirectoryError`.
            TransferError: it is larger than the limit `value`.
            BusyError: code runs.
        """
        at = _session.guest_path(path)
        with _session.files_of(os.fspath(path)):
            found = await self._core.ask("get_file", at)
        if found is None:
            raise _session.missing(os.fspath(path))
        return found

    async def list(self, path: str | os.PathLike[str] = ".") -> list[FileEntry]:
        """Returns the entries of the directory `path`.

        Raises:
            FileNotFoundError: there is no such directory.
            NotADirectoryError: it is a file.
            BusyError: code runs.
        """
        at = _session.guest_path(path)
        with _session.files_of(os.fspath(path)):
            found = await self._core.ask("list_files", at)
        return _session.entry_list(found)

    async def remove(self, path: str | os.PathLike[str]) -> bool:
        """Removes the file or empty directory `path`. Returns whether there was one.

        Raises:
            OSError: it cannot be removed.
            BusyError: code runs.
        """
        at = _session.guest_path(path)
        with _session.files_of(os.fspath(path)):
            return await self._core.ask("remove_file", at)
