"""A backend for Deep Agents: `create_deep_agent(..., backend=isolet.deepagents.Backend())`.

The agent's files are those of a session, and its commands run in the session's shell, which starts
no process. Needs deepagents 0.7.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import threading
import uuid
from typing import TYPE_CHECKING, Any

from deepagents.backends.protocol import (
    FILE_NOT_FOUND,
    INVALID_PATH,
    IS_DIRECTORY,
    PERMISSION_DENIED,
    ExecuteResponse,
    FileDownloadResponse,
    FileUploadResponse,
)
from deepagents.backends.sandbox import BaseSandbox

from ._sandbox import Sandbox
from ._scripts import is_cut, status, with_notes
from .errors import IsoletError

if TYPE_CHECKING:
    from typing_extensions import Self

    from .session import Session

_ERRORS: dict[type[Exception], str] = {
    FileNotFoundError: FILE_NOT_FOUND,
    PermissionError: PERMISSION_DENIED,
    IsADirectoryError: IS_DIRECTORY,
    NotADirectoryError: INVALID_PATH,
    FileExistsError: INVALID_PATH,
}


class Backend(BaseSandbox):
    """A `BaseSandbox` over one session of isolet, which all agents with it share.

    Each command has a shell of its own, which begins in the session's directory. Commands and
    files wait for each other. The output of a command that has ended the session says that its
    files are lost; the next one starts it anew.

    Args:
        session: a session that is there already. Otherwise the backend opens one when it is used
            first, and `close` ends it.
        timeout: the most seconds that a command may take unless the model says otherwise; the limit
            `run_time` by default, which bounds both.
        sandbox: the sandbox of the session, if several backends are to share one.
        **policy: what commands may do, as for `isolet.Sandbox`.
    """

    enable_capture_offload = True

    def __init__(
        self,
        session: Session | None = None,
        *,
        timeout: float | None = None,
        sandbox: Sandbox | None = None,
        **policy: Any,
    ) -> None:
        if sandbox is not None and policy:
            raise TypeError(f"`sandbox` has a policy, so {', '.join(policy)} cannot be given too")
        if session is not None and (sandbox is not None or policy):
            raise TypeError("`session` has a sandbox and a policy, so neither can be given too")
        self._session = session
        self._sandbox = sandbox
        self._policy = policy
        self._is_own = session is None
        self._timeout = timeout
        self._id = f"isolet-{uuid.uuid4().hex}"
        self._lock = threading.RLock()

    @property
    def id(self) -> str:
        """A name that no other backend has."""
        return self._id

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Runs a command. What it writes to the standard error comes last.

        With a `timeout` of 0, or without one, that of the backend applies. A command that did not
        end in time has the exit code 124.
        """
        with self._lock:
            limit = timeout or self._timeout
            execution = self._open().sh(command, program=True, timeout=limit)
        output = with_notes(execution.stdout + execution.stderr, execution)
        return ExecuteResponse(output, status(execution), is_cut(execution))

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Writes files, and makes their directories."""
        return [FileUploadResponse(path, self._file(path, data)[1]) for path, data in files]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Reads files."""
        return [FileDownloadResponse(path, *self._file(path)) for path in paths]

    def close(self) -> None:
        """Ends the session, if the backend has opened it. A later command opens another one."""
        with self._lock:
            if self._is_own and self._session is not None:
                self._session.close()
                self._session = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> Session:
        if self._session is None:
            if self._sandbox is None:
                self._sandbox = Sandbox(**self._policy)
            self._session = self._sandbox.session()
        elif not self._session.alive:
            self._session.reset()
        return self._session

    def _file(self, path: str, data: bytes | None = None) -> tuple[bytes | None, str | None]:
        """Writes or reads a file. Returns its contents, and the error as the protocol names it."""
        if not path.startswith("/") or "\0" in path:
            return None, INVALID_PATH
        try:
            with self._lock:
                files = self._open().files
                if data is None:
                    return files.get(path), None
                files.put(path, data)
                return None, None
        except (OSError, IsoletError) as error:
            return None, _ERRORS.get(type(error), str(error))
