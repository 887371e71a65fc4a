"""The sessions of the asynchronous API."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import _session
from .._handle import Handle
from .._values import text, to_plain, variables
from ..errors import TransferError
from ..execution import Display, Execution, FileEntry, Isolation, Package, Syntax, Variable
from ..policy import submit_to_wire
from ..tools import Submit, Tool, collect
from .streams import Stream

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._core import Core

Inputs = Mapping[str, Any]


class Session(Handle):
    """One interpreter, which keeps its variables from run to run. `Sandbox.session` opens it.

    `await session` waits until it is open. It runs one code at a time. If it is dropped without
    `close`, it is closed some time later.
    """

    def __init__(self, core: Core) -> None:
        """Use `Sandbox.session`."""
        self._core = core

    def __await__(self) -> Generator[Any, None, Self]:
        yield from self._core.check_opening().__await__()
        return self

    async def run(
        self,
        code: str,
        *,
        inputs: Inputs | None = None,
        timeout: float | None = None,
        stdin: str | bytes | None = None,
        argv: Sequence[str] | None = None,
        name: str | None = None,
        program: bool = False,
        keep_variables: bool = False,
        allow_return: bool = False,
        syntax: Syntax = "python",
        table_data: bool = False,
        on_stdout: Callable[[str], object] | None = None,
        on_stderr: Callable[[str], object] | None = None,
        on_display: Callable[[Display], object] | None = None,
    ) -> Execution:
        """Runs code, and returns what it did: as `isolet.Session.run`.

        If the task is cancelled, the guest is interrupted. If it stops within the limit `grace`,
        the session goes on, otherwise it is closed; then the task is cancelled. A second
        cancellation closes the session at once.

        Coroutine tools run on this loop, other ones in threads of its executor.

        Raises:
            TransferError: an input cannot cross.
            BusyError: the session runs code already.
            SessionClosedError: the session has ended.
            LimitError: the code is too long, or too many sessions are open.
            ServerDiedError: the server has ended, and the session with it.
            IsoletError: the host failed in another way.
            BaseException: a callback has raised it, or a tool, unless it is an `Exception`: those
                go to the guest.
        """
        stream = on_stdout is not None or on_stderr is not None or on_display is not None
        options = _session.run_options(
            timeout,
            stdin,
            argv,
            name,
            program,
            keep_variables,
            allow_return,
            syntax,
            table_data,
            stream,
        )
        core = self._core
        run = await core.begin(code, inputs, options)
        while True:
            found = await core.advance(run)
            if isinstance(found, Execution):
                return found
            try:
                if isinstance(found, Display):
                    callback: Callable[[Any], object] | None = on_display
                    shown: Any = found
                else:
                    callback = on_stderr if found.stream == "stderr" else on_stdout
                    shown = found.text
                if callback is not None:
                    callback(shown)
            except BaseException:
                await core.abandon(run)
                raise

    async def eval(self, code: str, **options: Any) -> Any:
        """Runs code and returns its value: `(await run(...)).raise_for_error().value`.

        Args:
            code: Python.
            **options: the other arguments of `run`.

        Raises:
            GuestError: the code failed. `GuestTimeoutError`: it did not end in time.
            TransferError: the value cannot cross: it is no plain data, or larger than the limit
                `value`.
            IsoletError: what `run` raises.
        """
        execution = (await self.run(code, **options)).raise_for_error()
        if execution.value_error is not None:
            raise TransferError(execution.value_error)
        return execution.value

    def stream(
        self,
        code: str,
        *,
        inputs: Inputs | None = None,
        timeout: float | None = None,
        stdin: str | bytes | None = None,
        argv: Sequence[str] | None = None,
        name: str | None = None,
        program: bool = False,
        keep_variables: bool = False,
        allow_return: bool = False,
        syntax: Syntax = "python",
        table_data: bool = False,
    ) -> Stream:
        """Runs code, and yields what it writes and displays as it comes; last, the `Execution`.

        Takes the arguments of `run`, without callbacks: as `isolet.Session.run`. The run starts
        with the iteration. If that is left early, the run is interrupted.

        >>> async for item in session.stream(code):
        ...     if isinstance(item, isolet.Output):
        ...         print(item, end="")
        """
        options = _session.run_options(
            timeout,
            stdin,
            argv,
            name,
            program,
            keep_variables,
            allow_return,
            syntax,
            table_data,
            True,
        )
        return Stream(self._core, code, inputs, options)

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

    async def contains(self, name: str) -> bool:
        """Returns whether there is a variable `name`. Works while code runs."""
        try:
            return bool(await self._core.ask("get", text(name, "name")))
        except TransferError:
            return True

    async def variables(self) -> list[Variable]:
        """Returns the variables of the guest, each with its type and `repr`. Works while code runs.

        A `repr` is cut after 500 characters.
        """
        return _session.variable_list(await self._core.ask("variables"))

    async def __getitem__(self, name: str) -> Any:
        """`await session["x"]` returns a variable."""
        found = await self._core.ask("get", text(name, "name"))
        if not found:
            raise KeyError(name)
        return found[0]

    def __setitem__(self, name: str, value: Any) -> None:
        """Sets a variable without waiting. What is done next with the session raises a failure.

        Raises:
            TransferError: the value cannot cross.
        """
        self._core.assign(text(name, "name"), to_plain(value, name))

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
        """Raises `KeyboardInterrupt` in the code that runs, if any does. For other tasks."""
        await self._core.ask("interrupt")

    async def reset(self) -> None:
        """Starts a fresh interpreter under the same policy, without variables and files.

        Works after a limit or an interrupt has ended the session.

        Raises:
            SessionClosedError: the session was closed with `close`.
        """
        self._core.report = await self._core.ask("reset")
        self._core.is_dead = False

    async def fork(self) -> Session:
        """Returns a second session that has all that this one has: as `isolet.Session.fork`.

        Raises:
            ConfigError: the policy does not say `forkable`.
            BusyError: code runs.
            SessionClosedError: the session has ended.
            LimitError: there are too many sessions, or copies of this one.
        """
        return (await self.fork_many(1))[0]

    async def fork_many(self, copies: int) -> list[Session]:
        """Returns several copies, as `fork` does.

        Args:
            copies: how many.
        """
        return [Session(core) for core in await self._core.fork(copies)]

    async def save(self, path: str | os.PathLike[str]) -> None:
        """Saves the session to a file: as `isolet.Session.save`.

        Raises:
            TransferError: the guest has what cannot be saved.
            ConfigError: the file cannot be written.
            BusyError: code runs.
            SessionClosedError: the session has ended.
        """
        await self._core.ask("save", _session.host_path(path))

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

    async def isolation(self) -> Isolation:
        """Returns where the session runs, and what protects the host from it."""
        await self._core.check_opening()
        return _session.isolation(self._core.report)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


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
        at, content = _session.guest_path(path), _session.contents(data)
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
