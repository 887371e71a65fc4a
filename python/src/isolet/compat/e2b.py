"""The interface of E2B's code interpreter: `from isolet.compat.e2b import Sandbox, AsyncSandbox`.

It needs no account and no package of E2B. There is no shell, only Python.
"""

from __future__ import annotations

import tempfile
import threading
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import GuestError
from ..sync import Sandbox as _Sandbox
from ._e2b_files import Filesystem
from ._e2b_models import (
    EntryInfo,
    Execution,
    ExecutionError,
    FileNotFoundException,
    InvalidArgumentException,
    Logs,
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
    default_context,
    error_of,
    new_context,
    policy_of,
    unless_killed,
)

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..session import Session
    from ._e2b_async import AsyncFilesystem, AsyncSandbox

__all__ = [
    "AsyncFilesystem",
    "AsyncSandbox",
    "Context",
    "EntryInfo",
    "Execution",
    "ExecutionError",
    "FileNotFoundException",
    "Filesystem",
    "InvalidArgumentException",
    "Logs",
    "NotFoundException",
    "OutputMessage",
    "Result",
    "Sandbox",
    "SandboxException",
    "TimeoutException",
    "WriteInfo",
]


def __getattr__(name: str) -> Any:
    if name in ("AsyncFilesystem", "AsyncSandbox"):
        # asyncio takes long to import.
        from . import _e2b_async

        return getattr(_e2b_async, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Kernel:
    """The session of a context."""

    def __init__(self, sandbox: _Sandbox, context: Context) -> None:
        self.context = context
        self.count = 0
        self._sandbox = sandbox
        self._session: Session | None = None

    def session(self) -> Session:
        """Returns the session, a new one if there is none that is alive."""
        session = self._session
        if session is None or not session.alive:
            session = self._sandbox.session()
            try:
                session.eval(ENTER, inputs={"_isolet_cwd": self.context.cwd})
            except GuestError as error:
                session.close()
                raise InvalidArgumentException(f"`cwd` cannot be entered: {error}") from error
            self._session = session
            self.count = 0
        return session

    def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()


class Sandbox:
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
        self._lock = threading.Lock()
        self._default = default_context()
        self._kernels = {"default": _Kernel(self._sandbox, self._default)}
        self._is_killed = False
        self.files = Filesystem(lambda: self._kernel(None).session())

    @classmethod
    def create(cls, template: str | None = None, **options: Any) -> Self:
        """Makes a sandbox: `Sandbox(template, **options)`."""
        return cls(template, **options)

    def run_code(
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
        session = kernel.session()
        kernel.count += 1
        cell = Cell()

        def printed(text: str, is_error: bool) -> None:
            message = cell.written(text, is_error)
            callback = on_stderr if is_error else on_stdout
            if callback is not None:
                callback(message)

        def shown(result: Result | None) -> None:
            if result is not None and on_result is not None:
                on_result(result)

        if envs:
            session.eval(SET, inputs={"_isolet_envs": envs})
        try:
            with unless_killed(lambda: self._is_killed):
                execution = session.run(
                    code,
                    timeout=timeout or None,
                    syntax="ipython",
                    table_data=True,
                    on_stdout=lambda text: printed(text, False),
                    on_stderr=lambda text: printed(text, True),
                    on_display=lambda display: shown(cell.displayed(display)),
                )
            if self._is_killed and execution.status in ("died", "interrupted"):
                raise TimeoutException(KILLED)
        finally:
            if envs and session.alive:
                session.run(UNSET)
        shown(cell.ended(execution))
        error = error_of(execution)
        if error is not None and on_error is not None:
            on_error(error)
        return cell.execution(error, kernel.count)

    def create_code_context(
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
        kernel.session()
        with self._lock:
            self._kernels[context.id] = kernel
        return context

    def remove_code_context(self, context: Context | str) -> None:
        """Ends the interpreter `context`, which may be its `id`.

        Raises:
            NotFoundException: there is none.
        """
        kernel = self._kernel(context)
        with self._lock:
            self._kernels.pop(kernel.context.id, None)
        kernel.close()

    def list_code_contexts(self) -> list[Context]:
        """Returns the interpreters."""
        with self._lock:
            return [kernel.context for kernel in self._kernels.values()]

    def restart_code_context(self, context: Context | str) -> None:
        """Starts the interpreter `context` afresh, without variables. It may be its `id`.

        Raises:
            NotFoundException: there is none.
        """
        self._kernel(context).close()

    def is_running(self, request_timeout: float | None = None) -> bool:
        """Returns whether the sandbox was not killed. `request_timeout` is ignored."""
        return not self._is_killed

    def set_timeout(self, timeout: int, **_: Any) -> None:
        """Does nothing with `timeout`: a sandbox lives until `kill`."""

    def kill(self, **_: Any) -> bool:
        """Ends the sandbox, and removes its files. Returns whether it was alive."""
        with self._lock:
            was_alive, self._is_killed = not self._is_killed, True
            kernels = list(self._kernels.values())
            self._kernels.clear()
        for kernel in kernels:
            kernel.close()
        self._sandbox.close()
        self._home.cleanup()
        return was_alive

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def __getattr__(self, name: str) -> Any:
        if name in ("commands", "pty", "git"):
            raise SandboxException(f"a sandbox of isolet has no `{name}`, it runs Python only")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

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
