"""The sessions of the asynchronous API."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import _session
from .._values import text, to_plain, variables
from ..errors import TransferError
from ..execution import Display, Execution, FileEntry, Isolation, Package, Variable
from ..policy import submit_to_wire
from ..tools import Submit, Tool, collect
from .streams import Stream

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._core import Core

Inputs = Mapping[str, Any]


class Session:
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
        argv: Sequence[str] = (),
        name: str | None = None,
        program: bool = False,
        allow_return: bool = False,
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
            Busy: the session runs code already.
            SessionClosed: the session has ended.
            IsoletError: the host failed in another way.
            BaseException: a callback has raised it, or a tool, unless it is an `Exception`: those
                go to the guest.
        """
        stream = on_stdout is not None or on_stderr is not None or on_display is not None
        options = _session.run_options(timeout, stdin, argv, name, program, allow_return, stream)
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

        Raises:
            GuestError: the code failed. `GuestTimeout`: it did not end in time.
            TransferError: the value cannot cross.
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
        argv: Sequence[str] = (),
        name: str | None = None,
        program: bool = False,
        allow_return: bool = False,
    ) -> Stream:
        """Runs code, and yields what it writes and displays as it comes; last, the `Execution`.

        The run starts with the iteration. If that is left early, the run is interrupted.
        """
        options = _session.run_options(timeout, stdin, argv, name, program, allow_return, True)
        return Stream(self._core, code, inputs, options)

    async def get(self, name: str, default: Any = None) -> Any:
        """Returns a variable as plain data, or `default`. Works while code runs.

        Raises:
            TransferError: the value cannot cross.
        """
        found = await self._core.ask("get", text(name, "name"))
        return found[0] if found else default

    async def set(self, values: Inputs) -> None:
        """Sets variables: all of them, or none.

        Raises:
            TransferError: one cannot cross.
        """
        await self._core.ask("set", variables(values, "values"))

    async def delete(self, name: str) -> bool:
        """Deletes a variable. Returns whether there was one."""
        return await self._core.ask("delete", text(name, "name"))

    async def contains(self, name: str) -> bool:
        """Returns whether there is a variable of this name. Works while code runs."""
        try:
            return bool(await self._core.ask("get", text(name, "name")))
        except TransferError:
            return True

    async def variables(self) -> list[Variable]:
        """Returns the variables of the guest. Works while code runs."""
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
        """Gives the guest further tools, or replaces some. `isolet.tool` has settings for them."""
        made = collect(tools)
        wire = [each.to_wire() for each in made.values()]
        self._core.tools.update(made)
        await self._core.ask("register", to_plain(wire, "tools"))

    async def set_submit(self, fields: Mapping[str, Any] | Submit) -> None:
        """Gives the guest `SUBMIT(...)` with these fields, or changes it."""
        await self._core.ask("submit", to_plain(submit_to_wire(fields), "fields"))

    async def load_packages(self, *requirements: str) -> list[Package]:
        """Loads packages. Returns those that were not loaded before.

        Raises:
            PackagesError: one cannot be found, or the policy does not allow it.
        """
        found = await self._core.ask("load_packages", _session.requirements(requirements))
        return _session.package_list(found)

    async def interrupt(self) -> None:
        """Raises `KeyboardInterrupt` in the code that runs, if any does. For other tasks."""
        await self._core.ask("interrupt")

    async def reset(self) -> None:
        """Starts a fresh interpreter under the same policy. Also revives a closed session's."""
        self._core.report = await self._core.ask("reset")
        self._core.is_dead = False

    async def close(self, *, wait: bool = True) -> None:
        """Ends the session, and a run in it. Does nothing if it has ended.

        Args:
            wait: whether to return only when it has ended.
        """
        await self._core.close(wait)

    @property
    def id(self) -> int:
        """The number of the session on its server, as in audit events."""
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
    """The files of a session, those of its mounts too."""

    def __init__(self, core: Core) -> None:
        """Use `Session.files`."""
        self._core = core

    async def put(self, path: str | os.PathLike[str], data: str | bytes | os.PathLike[str]) -> None:
        """Writes a file: a text, bytes, or a copy of a file of the host."""
        await self._core.ask("put_file", _session.guest_path(path), _session.contents(data))

    async def get(self, path: str | os.PathLike[str]) -> bytes:
        """Returns what a file contains.

        Raises:
            FileNotFoundError: there is no such file.
        """
        found = await self._core.ask("get_file", _session.guest_path(path))
        if found is None:
            raise _session.missing(os.fspath(path))
        return found

    async def list(self, path: str | os.PathLike[str] = ".") -> list[FileEntry]:
        """Returns the entries of a directory.

        Raises:
            FileNotFoundError: there is no such directory.
        """
        found = await self._core.ask("list_files", _session.guest_path(path))
        return _session.entry_list(found, os.fspath(path))

    async def remove(self, path: str | os.PathLike[str]) -> bool:
        """Removes a file. Returns whether there was one."""
        return await self._core.ask("remove_file", _session.guest_path(path))
