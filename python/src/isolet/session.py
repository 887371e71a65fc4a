"""The sessions of the synchronous API."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _interrupts, _session
from ._handle import Handle
from ._link import Run
from ._runs import RefusedError, abandon, advance, show
from ._values import text, to_plain, variables
from .errors import Interrupted, TransferError
from .execution import Display, Execution, FileEntry, Isolation, Package, Syntax, Variable
from .policy import submit_to_wire
from .streams import Stream
from .tools import Submit, Tool, collect

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._core import Core

Inputs = Mapping[str, Any]
_NOTHING = (None, None, None, "python")


class Session(Handle):
    """One interpreter, which keeps its variables from run to run. `Sandbox.session` opens it.

    It can be used by any thread, but runs one code at a time. If it is dropped without `close`, it
    is closed some time later.
    """

    def __init__(self, core: Core) -> None:
        """Use `Sandbox.session`."""
        self._core = core

    def run(
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
        """Runs code, and returns what it did.

        An exception of the code, a timeout or another end is part of the result:
        `raise_for_error` raises it. Ctrl-C interrupts the guest. If the guest stops within the
        limit `grace`, the session goes on, otherwise it is closed; then `Interrupted` is raised. A
        second Ctrl-C closes the session at once.

        Args:
            code: Python. `await` is allowed, and the value of a last expression is the result's.
                At most as long as the limit `source`.
            inputs: variables that are set before.
            timeout: the most seconds that the run may take, at most the limit `run_time`, without
                those in tools. Past it the guest gets `KeyboardInterrupt`, and the result has the
                status `timeout`, and the output so far.
            stdin: the standard input.
            argv: `sys.argv` after the name of the program. Without it, `sys.argv` stays as it is;
                a program gets none.
            name: the name of the file in tracebacks, `<cell>` by default.
            program: whether to run it as `python FILE` does, without a value. At its end its
                variables are deleted and its files closed.
            keep_variables: whether a program's variables stay in the session, which `get` reads
                then; its files are only flushed. Those of other code stay anyway.
            allow_return: whether `return` at the top level ends the code, with its value.
            syntax: how the code is read. `python -c` leaves out the indentation that all lines
                share, as `"command"` does. With `"ipython"` it is a cell of a notebook: it may be
                indented as a whole and have IPython's commands, such as `%timeit`.
            table_data: whether displays of pandas' tables also have their data, by column, as
                `application/vnd.isolet.table.v1+json`.
            on_stdout: called with each piece of the standard output as it is written.
            on_stderr: the same for the standard error.
            on_display: called with each picture, table and other rich result.

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
        options = None
        set_ = (timeout, name, argv, syntax) != _NOTHING
        if stream or stdin or program or keep_variables or allow_return or table_data or set_:
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
        link = core.link
        run = Run(core.number, core.tools)
        guard = _interrupts.guard()
        try:
            core.begin(run, code, inputs, options, guard)
            found = advance(link, run, guard)
            while not isinstance(found, Execution):
                try:
                    show(found, guard, on_stdout, on_stderr, on_display)
                except BaseException:
                    abandon(link, run, guard)
                    raise
                found = advance(link, run, guard)
        except (RefusedError, Interrupted) as error:
            raise core.failure(error) from None
        finally:
            if guard is not None:
                guard.leave()
        return core.seen(run, found, guard)

    def eval(self, code: str, **options: Any) -> Any:
        """Runs code and returns its value: `run(...).raise_for_error().value`.

        Args:
            code: Python.
            **options: the other arguments of `run`.

        Raises:
            GuestError: the code failed. `GuestTimeoutError`: it did not end in time.
            TransferError: the value cannot cross: it is no plain data, or larger than the limit
                `value`.
            IsoletError: what `run` raises.
        """
        execution = self.run(code, **options).raise_for_error()
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

        Takes the arguments of `run`, without callbacks: as `isolet.Session.run`. A guest that
        writes faster than its output is taken has to wait. If the iteration is left early, the run
        is interrupted.

        >>> for item in session.stream(code):
        ...     if isinstance(item, isolet.Output):
        ...         print(item, end="")

        Raises:
            TransferError, BusyError, SessionClosedError, IsoletError: as with `run`.
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

    def get(self, name: str, default: Any = None) -> Any:
        """Returns a variable as plain data. Works while code runs.

        Args:
            name: the name of a variable.
            default: what is returned if there is none.

        Raises:
            TransferError: the value cannot cross: it is no plain data, or larger than the limit
                `value`.
        """
        found = self._core.ask("get", text(name, "name"))
        return found[0] if found else default

    def set(self, values: Inputs) -> None:
        """Sets variables: all of them, or none.

        Args:
            values: the values by name: None, bool, int, float, str, bytes, and lists, dicts and
                dataclasses of them, in all at most as large as the limit `value`.

        Raises:
            TransferError: one cannot cross, or a name is no identifier of Python.
            BusyError: code runs.
        """
        self._core.ask("set", variables(values, "values"))

    def delete(self, name: str) -> bool:
        """Deletes the variable `name`. Returns whether there was one."""
        return self._core.ask("delete", text(name, "name"))

    def variables(self) -> list[Variable]:
        """Returns the variables of the guest, each with its type and `repr`. Works while code runs.

        A `repr` is cut after 500 characters.
        """
        return _session.variable_list(self._core.ask("variables"))

    def __getitem__(self, name: str) -> Any:
        found = self._core.ask("get", text(name, "name"))
        if not found:
            raise KeyError(name)
        return found[0]

    def __setitem__(self, name: str, value: Any) -> None:
        self._core.ask("set", {text(name, "name"): to_plain(value, name)})

    def __delitem__(self, name: str) -> None:
        if not self.delete(name):
            raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        if type(name) is not str:
            return False
        try:
            return bool(self._core.ask("get", text(name, "name")))
        except TransferError:
            return True

    @property
    def files(self) -> Files:
        """The files that the guest sees."""
        return Files(self._core)

    def register(self, *tools: Callable[..., Any] | Tool) -> None:
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
        self._core.ask("register", to_plain(wire, "tools"))

    def set_submit(self, fields: Mapping[str, Any] | Submit) -> None:
        """Gives the guest `SUBMIT(...)`, or changes it.

        Args:
            fields: the type of each argument by name; or a `Submit`, which also names the function.

        Raises:
            ConfigError: a name is no identifier of Python.
            BusyError: code runs.
        """
        self._core.ask("submit", to_plain(submit_to_wire(fields), "fields"))

    def load_packages(self, *requirements: str) -> list[Package]:
        """Loads packages. Returns those that were not loaded before.

        Args:
            *requirements: such as `pydantic` or `rich>=13`. The host fetches them, whatever the
                policy allows the guest.

        Raises:
            PackagesError: one cannot be found, or conflicts with one that is loaded. The session
                goes on.
            BusyError: code runs.
        """
        found = self._core.ask("load_packages", _session.requirements(requirements))
        return _session.package_list(found)

    def interrupt(self) -> None:
        """Raises `KeyboardInterrupt` in the code that runs, if any does. For other threads."""
        self._core.ask("interrupt")

    def reset(self) -> None:
        """Starts a fresh interpreter under the same policy, without variables and files.

        Works after a limit or an interrupt has ended the session.

        Raises:
            SessionClosedError: the session was closed with `close`.
        """
        self._core.report = self._core.ask("reset")
        self._core.is_dead = False

    def fork(self) -> Session:
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
        return self.fork_many(1)[0]

    def fork_many(self, copies: int) -> list[Session]:
        """Returns several copies, as `fork` does.

        Args:
            copies: how many.
        """
        return [Session(core) for core in self._core.fork(copies)]

    def save(self, path: str | os.PathLike[str]) -> None:
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
        self._core.ask("save", _session.host_path(path))

    def close(self, *, wait: bool = True) -> None:
        """Ends the session for good, and a run in it. Does nothing if it has ended.

        Args:
            wait: whether to return only when it has ended.
        """
        self._core.close(wait)

    @property
    def id(self) -> int:
        """The number of the session on its server, as `session` of audit events."""
        return self._core.number

    @property
    def alive(self) -> bool:
        """Whether the session can run code, as far as is known."""
        return self._core.is_alive

    @property
    def isolation(self) -> Isolation:
        """Where the session runs, and what protects the host from it. Waits for its start."""
        self._core.check_opening()
        return _session.isolation(self._core.report)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Files:
    """The files of a session, those of its mounts too. Relative ones are in `/home/user`.

    A file that crosses may be as large as the limit `value`, 256 MiB by default.
    """

    def __init__(self, core: Core) -> None:
        """Use `Session.files`."""
        self._core = core

    def put(self, path: str | os.PathLike[str], data: str | bytes | os.PathLike[str]) -> None:
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
            self._core.ask("put_file", at, content)

    def get(self, path: str | os.PathLike[str]) -> bytes:
        """Returns what the file `path` contains.

        Raises:
            FileNotFoundError: there is no such file.
            OSError: it cannot be read, such as `IsADirectoryError`.
            TransferError: it is larger than the limit `value`.
            BusyError: code runs.
        """
        at = _session.guest_path(path)
        with _session.files_of(os.fspath(path)):
            found = self._core.ask("get_file", at)
        if found is None:
            raise _session.missing(os.fspath(path))
        return found

    def list(self, path: str | os.PathLike[str] = ".") -> list[FileEntry]:
        """Returns the entries of the directory `path`.

        Raises:
            FileNotFoundError: there is no such directory.
            NotADirectoryError: it is a file.
            BusyError: code runs.
        """
        at = _session.guest_path(path)
        with _session.files_of(os.fspath(path)):
            found = self._core.ask("list_files", at)
        return _session.entry_list(found)

    def remove(self, path: str | os.PathLike[str]) -> bool:
        """Removes the file or empty directory `path`. Returns whether there was one.

        Raises:
            OSError: it cannot be removed.
            BusyError: code runs.
        """
        at = _session.guest_path(path)
        with _session.files_of(os.fspath(path)):
            return self._core.ask("remove_file", at)
