"""`isolet.compat.e2b.AsyncSandbox`."""

from __future__ import annotations

import tempfile
import threading
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Literal

from .. import execution as _execution
from ..aio._sandbox import Sandbox as _Sandbox
from ..errors import GuestError
from ._e2b_async_waits import Lock, Turn, call, cleanup, contents
from ._e2b_files import (
    DO,
    MAKE,
    MOVE,
    REMOVE,
    STAT,
    absolute,
    entry_info,
    info,
    paths,
    pieces,
    told,
    whole,
    written,
)
from ._e2b_models import (
    CommandResult,
    EntryInfo,
    Execution,
    ExecutionError,
    InvalidArgumentException,
    NotFoundException,
    OutputMessage,
    Result,
    SandboxException,
    TimeoutException,
    WriteInfo,
)
from ._e2b_shared import (
    ENTER,
    KILLED,
    SET,
    UNSET,
    Cell,
    Context,
    check_arguments,
    check_language,
    command_result,
    default_context,
    error_of,
    new_context,
    policy_of,
    script_of,
    unless_killed,
)

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..aio.session import Session


class AsyncFilesystem:
    """Reads and writes files: `AsyncSandbox.files`. A `path` is relative to `/home/user`.

    A file may be as large as the limit `value`, 256 MiB by default. What cannot be done is a
    `SandboxException`. Further arguments, which E2B's service has, are ignored.
    """

    def __init__(self, session: Callable[[], Awaitable[Session]]) -> None:
        """Use `AsyncSandbox.files`."""
        self._session = session

    async def read(
        self,
        path: str,
        format: Literal["text", "bytes", "stream"] = "text",  # noqa: A002 - as with E2B
        **_: Any,
    ) -> Any:
        """Returns what a file contains.

        Args:
            path: the file.
            format: `text` for a `str`, the default; `bytes` for a `bytearray`; `stream` for an
                iterator of `bytes`.

        Raises:
            FileNotFoundException: there is no such file.
        """
        with told():
            session = await self._session()
            data = await session.files.get(absolute(path))
        return _stream(data) if format == "stream" else whole(data, format)

    async def write(
        self, path: str, data: str | bytes | bytearray | IO[Any], **_: Any
    ) -> WriteInfo:
        """Writes a file `path`, and makes its directory. `data` may also be an open file."""
        with told():
            session = await self._session()
            await session.files.put(absolute(path), await contents(data))
        return written(path)

    async def write_files(self, files: Sequence[Mapping[str, Any]], **_: Any) -> list[WriteInfo]:
        """Writes `files`: mappings with `path` and `data`."""
        return [await self.write(each["path"], each["data"]) for each in files]

    async def list(self, path: str, depth: int = 1, **_: Any) -> list[EntryInfo]:
        """Returns the entries of a directory.

        Args:
            path: the directory.
            depth: from how many levels: 1 for the directory itself, the default; 2 for those in it
                too.

        Raises:
            FileNotFoundException: there is no such directory.
        """
        with told():
            session = await self._session()
            entries = await session.files.list(absolute(path))
        found: list[EntryInfo] = []
        for entry in entries:
            at = entry_info(path, entry)
            found.append(at)
            if entry.is_dir and depth > 1:
                found.extend(await self.list(at.path, depth - 1))
        return found

    async def exists(self, path: str, **_: Any) -> bool:
        """Returns whether there is a file or directory `path`."""
        return await self._do(STAT, path) is not None

    async def get_info(self, path: str, **_: Any) -> EntryInfo:
        """Returns what is known of the file or directory `path`.

        Raises:
            FileNotFoundException: there is none.
        """
        return info(path, await self._do(STAT, path))

    async def remove(self, path: str, **_: Any) -> None:
        """Removes the file `path`, or the directory with all that is in it.

        Raises:
            FileNotFoundException: there is none.
        """
        await self._do(REMOVE, path)

    async def rename(self, old_path: str, new_path: str, **_: Any) -> EntryInfo:
        """Moves the file or directory `old_path` to `new_path`.

        Raises:
            FileNotFoundException: there is none.
        """
        await self._do(MOVE, old_path, new_path)
        return await self.get_info(new_path)

    async def make_dir(self, path: str, **_: Any) -> bool:
        """Makes the directory `path` and its parents. Returns `False` if there is one."""
        return await self._do(MAKE, path) is True

    async def _do(self, expression: str, path: str, to: str = ".") -> Any:
        with told():
            session = await self._session()
            return await session.eval(DO.format(expression=expression), inputs=paths(path, to))


class AsyncCommands:
    """Runs commands: `AsyncSandbox.commands`. No process starts: `docs/concepts/shell.md`."""

    def __init__(self, kernel: Callable[[], _Kernel], is_killed: Callable[[], bool]) -> None:
        """Use `AsyncSandbox.commands`."""
        self._kernel = kernel
        self._is_killed = is_killed

    async def run(
        self,
        cmd: str,
        background: bool | None = None,
        envs: dict[str, str] | None = None,
        user: str | None = None,
        cwd: str | None = None,
        on_stdout: Callable[[str], Any] | None = None,
        on_stderr: Callable[[str], Any] | None = None,
        stdin: bool | None = None,
        timeout: float | None = 60,
        request_timeout: float | None = None,
    ) -> CommandResult:
        """Runs a command line in a shell of its own, which sees the files of the code.

        It waits for code and commands that run in the default context.

        Args:
            cmd: what bash would run.
            background: must not be set.
            envs: exported variables.
            user: ignored, like `stdin` and `request_timeout`.
            cwd: the directory, `/home/user` by default.
            on_stdout: called with what the command prints, as it is printed.
            on_stderr: the same for the standard error.
            stdin: ignored: the input is empty.
            timeout: the most seconds that it may take, at most the limit `run_time`; 0 is that
                limit.
            request_timeout: ignored.

        Raises:
            CommandExitException: it ended with a status other than 0.
            TimeoutException: it took too long, or the sandbox was killed meanwhile.
            InvalidArgumentException: `background` is set.
        """
        script = script_of(cmd, cwd, background)
        pieces: tuple[list[str], list[str]] = ([], [])
        async with self._kernel().turn:
            # It may have been restarted meanwhile.
            session = await self._kernel().session()
            execution = None
            with unless_killed(self._is_killed):
                async with session.stream(
                    script,
                    syntax="shell",
                    program=True,
                    inputs=envs or {},
                    timeout=timeout or None,
                ) as stream:
                    async for event in stream:
                        if isinstance(event, _execution.Execution):
                            execution = event
                        elif isinstance(event, _execution.Output):
                            is_error = event.stream == "stderr"
                            pieces[is_error].append(event.text)
                            await call(on_stderr if is_error else on_stdout, event.text)
        assert execution is not None
        if self._is_killed() and execution.status in ("died", "interrupted"):
            raise TimeoutException(KILLED)
        return command_result(execution, "".join(pieces[0]), "".join(pieces[1]))


class _Kernel:
    """The session of a context."""

    def __init__(self, sandbox: _Sandbox, context: Context) -> None:
        self.context = context
        self.count = 0
        self.turn = Turn()
        """Held by the run whose turn it is."""
        self._sandbox = sandbox
        self._session: Session | None = None
        self._opening = Lock()

    async def session(self) -> Session:
        """Returns the session, a new one if there is none that is alive."""
        async with self._opening:
            session = self._session
            if session is None or not session.alive:
                session = self._sandbox.session()
                try:
                    await session.eval(ENTER, inputs={"_isolet_cwd": self.context.cwd})
                except GuestError as error:
                    await session.close()
                    raise InvalidArgumentException(f"`cwd` cannot be entered: {error}") from error
                self._session = session
                self.count = 0
            return session

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()


class AsyncSandbox:
    """A sandbox with an interpreter that keeps its variables, and files under `/home/user`.

    It lives until `kill`. Unlike E2B's it has no network unless it is allowed one. A run may take
    300 seconds, unless `limits` says otherwise.

    Args:
        template: ignored, like `timeout`, `metadata` and `api_key`: there is nothing to choose.
        envs: environment variables of the code.
        allow_internet_access: whether the code may ask every public address.
        **policy: what the code may do, as for `isolet.Sandbox`: `packages=["pandas"]`.
    """

    def __init__(
        self,
        template: str | None = None,
        timeout: int | None = None,
        metadata: dict[str, str] | None = None,
        envs: dict[str, str] | None = None,
        allow_internet_access: bool = False,
        api_key: str | None = None,
        **policy: Any,
    ) -> None:
        self.sandbox_id = uuid.uuid4().hex
        # All contexts see the same files.
        self._home = tempfile.TemporaryDirectory(prefix="isolet-")
        self._sandbox = _Sandbox(**policy_of(self._home.name, envs, allow_internet_access, policy))
        # Held for moments only: the contexts may be used by several threads.
        self._lock = threading.Lock()
        self._default = default_context()
        self._kernels = {"default": _Kernel(self._sandbox, self._default)}
        self._is_killed = False
        self.files = AsyncFilesystem(self._default_session)
        self.commands = AsyncCommands(lambda: self._kernel(None), lambda: self._is_killed)

    @classmethod
    async def create(cls, template: str | None = None, **options: Any) -> Self:
        """Makes a sandbox. `template` and `options` are those of the class."""
        return cls(template, **options)

    async def run_code(
        self,
        code: str,
        language: str | None = None,
        context: Context | None = None,
        on_stdout: Callable[[OutputMessage], Any] | None = None,
        on_stderr: Callable[[OutputMessage], Any] | None = None,
        on_result: Callable[[Result], Any] | None = None,
        on_error: Callable[[ExecutionError], Any] | None = None,
        envs: dict[str, str] | None = None,
        timeout: float | None = None,
        request_timeout: float | None = None,
    ) -> Execution:
        """Runs code as a cell of a notebook.

        What the code raises is in `Execution.error`. If the interpreter is lost, such as by a limit
        of its memory, that is an error too, and the next run gets a new one.

        Args:
            code: Python.
            language: `python`, which is the default.
            context: the interpreter; a first one by default.
            on_stdout: called with what the code prints, as it is printed.
            on_stderr: the same for the standard error.
            on_result: called with each result.
            on_error: called with the error, if there is one.
            envs: environment variables for this run.
            timeout: the most seconds that it may take, 300 by default and at most the limit
                `run_time`; 0 is that limit.
            request_timeout: ignored.

        Raises:
            TimeoutException: it took too long, or the sandbox was killed meanwhile.
            InvalidArgumentException: it is in another language, or `context` is given too.
        """
        check_arguments(language, context)
        kernel = self._kernel(context)
        cell = Cell()
        async with kernel.turn:
            # It may have been removed meanwhile.
            session = await self._kernel(context).session()
            kernel.count += 1
            count = kernel.count
            if envs:
                await session.eval(SET, inputs={"_isolet_envs": envs})
            execution = None
            try:
                with unless_killed(lambda: self._is_killed):
                    async with session.stream(
                        code, timeout=timeout or None, syntax="ipython", table_data=True
                    ) as stream:
                        async for event in stream:
                            if isinstance(event, _execution.Execution):
                                execution = event
                            elif isinstance(event, _execution.Display):
                                await call(on_result, cell.displayed(event))
                            else:
                                is_error = event.stream == "stderr"
                                message = cell.written(event.text, is_error)
                                await call(on_stderr if is_error else on_stdout, message)
            finally:
                if envs and session.alive:
                    await session.run(UNSET)
        assert execution is not None
        if self._is_killed and execution.status in ("died", "interrupted"):
            raise TimeoutException(KILLED)
        await call(on_result, cell.ended(execution))
        error = error_of(execution)
        await call(on_error, error)
        return cell.execution(error, count)

    async def create_code_context(
        self,
        cwd: str | None = None,
        language: str | None = None,
        request_timeout: float | None = None,
    ) -> Context:
        """Makes a further interpreter. It sees the same files under `/home/user`.

        Args:
            cwd: the directory in which it starts, `/home/user` by default.
            language: `python`, which is the default.
            request_timeout: ignored.

        Raises:
            InvalidArgumentException: the language is another, or the directory does not exist.
        """
        self._kernel(None)
        check_language(language)
        context = new_context(cwd)
        kernel = _Kernel(self._sandbox, context)
        await kernel.session()
        with self._lock:
            self._kernels[context.id] = kernel
        return context

    async def remove_code_context(self, context: Context | str) -> None:
        """Ends the interpreter `context`, which may be its `id`.

        Raises:
            NotFoundException: there is none.
        """
        kernel = self._kernel(context)
        with self._lock:
            self._kernels.pop(kernel.context.id, None)
        await kernel.close()

    async def list_code_contexts(self) -> list[Context]:
        """Returns the interpreters."""
        with self._lock:
            return [kernel.context for kernel in self._kernels.values()]

    async def restart_code_context(self, context: Context | str) -> None:
        """Starts the interpreter `context` afresh, without variables. It may be its `id`.

        Raises:
            NotFoundException: there is none.
        """
        await self._kernel(context).close()

    async def is_running(self, request_timeout: float | None = None) -> bool:
        """Returns whether the sandbox was not killed. `request_timeout` is ignored."""
        return not self._is_killed

    async def set_timeout(self, timeout: int, **_: Any) -> None:
        """Does nothing with `timeout`: a sandbox lives until `kill`."""

    async def kill(self, **_: Any) -> bool:
        """Ends the sandbox, and removes its files. Returns whether it was alive."""
        with self._lock:
            was_alive, self._is_killed = not self._is_killed, True
            kernels = list(self._kernels.values())
            self._kernels.clear()
        for kernel in kernels:
            await kernel.close()
        await self._sandbox.close()
        await cleanup(self._home)
        return was_alive

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()

    def __getattr__(self, name: str) -> Any:
        if name in ("pty", "git"):
            raise SandboxException(
                f"a sandbox of isolet has no `{name}`, it has `commands` and `files`"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    async def _default_session(self) -> Session:
        return await self._kernel(None).session()

    def _kernel(self, context: Context | str | None) -> _Kernel:
        if self._is_killed:
            raise NotFoundException(f"the sandbox {self.sandbox_id} was killed")
        number = context.id if isinstance(context, Context) else context or "default"
        with self._lock:
            kernel = self._kernels.get(number)
            if kernel is None and number == "default":
                kernel = self._kernels[number] = _Kernel(self._sandbox, self._default)
        if kernel is None:
            raise NotFoundException(f"there is no context {number!r}")
        return kernel


async def _stream(data: bytes) -> AsyncIterator[bytes]:
    for piece in pieces(data):
        yield piece
