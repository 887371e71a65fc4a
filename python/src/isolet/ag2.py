"""A code environment for AG2: `SandboxCodeTool(isolet.ag2.CodeEnvironment())`.

Needs AG2 1.2.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from ._sandbox import Sandbox
from .function_tools import model_text

if TYPE_CHECKING:
    from ag2.tools.code.environment.base import CodeRunResult
    from typing_extensions import Self

    from .session import Session


class CodeEnvironment:
    """Runs Python of AG2's agents in a session of isolet.

    Variables stay from call to call until `close`. Calls wait for each other.

    Args:
        timeout: the most seconds that a call may take; the limit `run_time` by default.
        max_chars: the most characters of output, 20,000 by default. The middle of longer ones is
            left out.
        sandbox: the sandbox, if several environments are to share one.
        **policy: what the code may do, as for `isolet.Sandbox`.
    """

    supported_languages = ("python",)

    def __init__(
        self,
        *,
        timeout: float | None = None,
        max_chars: int = 20_000,
        sandbox: Sandbox | None = None,
        **policy: Any,
    ) -> None:
        if sandbox is not None and policy:
            raise TypeError(f"`sandbox` has a policy, so {', '.join(policy)} cannot be given too")
        self.timeout = timeout
        self._max_chars = max_chars
        self._sandbox = Sandbox(**policy) if sandbox is None else sandbox
        self._session: Session | None = None
        self._lock = threading.Lock()

    async def run(self, code: str, language: str, *, context: Any = None) -> CodeRunResult:
        """Runs `code`. The output has the value of its last expression, or the traceback, too."""
        from ag2.tools.code.environment.base import CodeRunResult

        if language != "python":
            return CodeRunResult(f"the language is `{language}`, and only `python` runs here", 1)
        return CodeRunResult(*await asyncio.to_thread(self._run, code))

    def close(self) -> None:
        """Ends the session. A later call starts a new one."""
        with self._lock:
            session, self._session = self._session, None
        if session is not None:
            session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __deepcopy__(self, _: Any) -> Self:
        # AG2 copies the tools of an agent.
        return self

    def _run(self, code: str) -> tuple[str, int]:
        with self._lock:
            session = self._session
            if session is None or not session.alive:
                session = self._session = self._sandbox.session()
            execution = session.run(code, timeout=self.timeout)
        exit_code = execution.exit_code
        if exit_code is None:
            exit_code = 0 if execution.ok else 1
        return model_text(execution, self._max_chars), exit_code
