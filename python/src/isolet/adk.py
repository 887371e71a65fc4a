"""A code executor for Google ADK: `LlmAgent(code_executor=isolet.adk.CodeExecutor(), ...)`.

Needs google-adk 2.13.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import base64
import binascii
import mimetypes
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from google.adk.code_executors.base_code_executor import BaseCodeExecutor
from google.adk.code_executors.code_execution_utils import (
    CodeExecutionInput,
    CodeExecutionResult,
    File,
)
from pydantic import PrivateAttr

from ._losses import loss
from ._sandbox import Sandbox
from .errors import TransferError

if TYPE_CHECKING:
    from .execution import Execution
    from .session import Session

_SUFFIXES = {"image/png": "png", "image/jpeg": "jpg", "image/svg+xml": "svg"}
_POLICY = {"arbitrary_types_allowed": True, "extra": "forbid"}


class CodeExecutor(BaseCodeExecutor):
    """A `BaseCodeExecutor` whose code runs in sessions of isolet.

    If it is `stateful`, which is the default, each session of ADK keeps its variables. Files that
    the code writes and pictures that it displays become output files.

    Args:
        sandbox: the sandbox; one without permissions by default. Also
            `CodeExecutor.with_policy(packages=["pandas"])`.
        stateful: whether variables stay from step to step.
        max_sessions: how many sessions are kept. The one that was not used for the longest time
            is ended first.
        timeout_seconds: the most seconds that code may run; the limit `run_time` by default.
        optimize_data_file: as in ADK: it writes code for pandas, so allow that package.
    """

    model_config = _POLICY  # type: ignore[assignment]

    stateful: bool = True
    sandbox: Any = None
    max_sessions: int = 64

    _sessions: OrderedDict[str, tuple[Session, threading.Lock]] = PrivateAttr(
        default_factory=OrderedDict
    )
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    @classmethod
    def with_policy(cls, **policy: Any) -> CodeExecutor:
        """Returns an executor with a sandbox of this policy, as for `isolet.Sandbox`."""
        return cls(sandbox=Sandbox(**policy))

    def model_post_init(self, context: Any, /) -> None:
        """Makes what ADK's fields do not hold: pydantic calls it."""
        super().model_post_init(context)
        if self.sandbox is None:
            self.sandbox = Sandbox()

    def execute_code(
        self, invocation_context: Any, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        """Runs code. The value of its last expression is written to the standard output."""
        number = code_execution_input.execution_id
        if not self.stateful or number is None:
            with self.sandbox.session() as session:
                return self._run(session, code_execution_input)
        session, lock = self._kept(number)
        with lock:
            return self._run(session, code_execution_input)

    def close(self) -> None:
        """Ends all sessions."""
        with self._lock:
            sessions = list(self._sessions.values())
            self._sessions.clear()
        for session, _ in sessions:
            session.close()

    def _kept(self, number: str) -> tuple[Session, threading.Lock]:
        dropped: list[Session] = []
        with self._lock:
            found = self._sessions.pop(number, None)
            if found is None or not found[0].alive:
                found = self.sandbox.session(), threading.Lock()
            self._sessions[number] = found
            while len(self._sessions) > self.max_sessions:
                dropped.append(self._sessions.popitem(last=False)[1][0])
        for session in dropped:
            session.close(wait=False)
        return found

    def _run(self, session: Session, given: CodeExecutionInput) -> CodeExecutionResult:
        for file in given.input_files or ():
            session.files.put(file.name, _bytes(file.content))
        execution = session.run(given.code, timeout=self.timeout_seconds)
        files = _displayed(execution)
        for written in execution.files:
            try:
                files.append(_file(written.path, session.files.get(written.path)))
            except (FileNotFoundError, TransferError):
                # The code has removed it again, or it is no plain file.
                continue
        stdout = execution.stdout
        if execution.ok and (execution.value is not None or execution.value_error is not None):
            stdout += f"{execution.repr}\n"
        # A standard error marks the code as failed, and warnings are no failure.
        stderr = "" if execution.ok else execution.stderr + _error(execution)
        exit_code = execution.exit_code
        if exit_code is None:
            exit_code = 0 if execution.ok else 1
        return CodeExecutionResult(stdout, stderr, files, exit_code)


def _error(execution: Execution) -> str:
    error = execution.error
    text = error.traceback if error is not None else execution.failure or ""
    lost = loss(execution, "The session has ended: variables and imports are lost.")
    return f"{text}\n{lost}" if lost else text


def _displayed(execution: Execution) -> list[File]:
    files: list[File] = []
    for display in execution.displays:
        for kind, suffix in _SUFFIXES.items():
            data = display.data.get(kind)
            if data is not None:
                content = data if isinstance(data, bytes) else data.encode()
                files.append(File(f"display_{len(files) + 1}.{suffix}", content, kind))
                break
    return files


def _file(path: str, content: bytes) -> File:
    name = path.rpartition("/")[2]
    return File(name, content, mimetypes.guess_type(name)[0] or "application/octet-stream")


def _bytes(content: str | bytes) -> bytes:
    """Returns a file's bytes. ADK gives them as base64 or as they are."""
    data = content.encode() if isinstance(content, str) else content
    try:
        decoded = base64.b64decode(data, validate=True)
    except binascii.Error:
        return data
    return decoded if base64.b64encode(decoded) == data else data
