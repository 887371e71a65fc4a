"""An executor for OpenEnv: `isolet.openenv.install()` before its environments are imported.

`PyExecutor`, which coding environments use, then runs code in a sandbox, and not in the server's
own process. Needs openenv 0.10.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from openenv.core.env_server.types import CodeExecResult

from .sync import Sandbox

if TYPE_CHECKING:
    from .execution import Execution
    from .session import Session

_HELPERS = """\
from traceback import format_exc
def safe_json_dumps(obj):
    import json
    return json.dumps(obj, default=repr)
"""


class PyExecutor:
    """OpenEnv's `PyExecutor`, with the code in a session of isolet.

    Variables stay from run to run. If a limit has ended the session, the next run starts afresh,
    and the one that was ended says so.

    Args:
        additional_imports: ignored: code may import all of the standard library, and packages
            that the policy gives.
        timeout: the most seconds that a run may take; the limit `run_time` by default.
        sandbox: the sandbox; by default one of `policy`.
        **policy: what the code may do, as for `isolet.Sandbox`.
    """

    def __init__(
        self,
        additional_imports: Sequence[str] | None = None,
        *,
        timeout: float | None = None,
        sandbox: Sandbox | None = None,
        **policy: Any,
    ) -> None:
        if sandbox is not None and policy:
            raise TypeError(f"`sandbox` has a policy, so {', '.join(policy)} cannot be given too")
        self.timeout = timeout
        self._sandbox = Sandbox(**policy) if sandbox is None else sandbox
        self._session: Session | None = None

    def run(self, code: str) -> CodeExecResult:
        """Runs code. The value of its last expression is written to the standard output."""
        session = self._session
        if session is None or not session.alive:
            session = self._session = self._sandbox.session()
            session.run(_HELPERS).raise_for_error()
        execution = session.run(code, timeout=self.timeout)
        exit_code = execution.exit_code
        if exit_code is None:
            exit_code = 0 if execution.ok else 1
        return CodeExecResult(
            stdout=_stdout(execution), stderr=_stderr(execution), exit_code=exit_code
        )

    def close(self) -> None:
        """Ends the session. A later run starts a new one."""
        session, self._session = self._session, None
        if session is not None:
            session.close()


def install(
    *, timeout: float | None = None, sandbox: Sandbox | None = None, **policy: Any
) -> Callable[[], None]:
    """Makes `PyExecutor` in OpenEnv's modules isolet's, in this program. Returns what undoes that.

    A module that has imported the name before keeps its own. All executors share the sandbox, and
    each has a session.

    Args:
        timeout: the most seconds that a run may take.
        sandbox: the sandbox; by default one of `policy`.
        **policy: what the code may do, as for `isolet.Sandbox`.
    """
    if sandbox is not None and policy:
        raise TypeError(f"`sandbox` has a policy, so {', '.join(policy)} cannot be given too")
    # They need smolagents, and `PyExecutor` does not.
    import openenv.core.tools as tools
    import openenv.core.tools.local_python_executor as module

    chosen = Sandbox(**policy) if sandbox is None else sandbox
    seconds = timeout

    class Installed(PyExecutor):
        """`PyExecutor` with the sandbox that `install` was given."""

        def __init__(self, additional_imports: Sequence[str] | None = None) -> None:
            super().__init__(additional_imports, timeout=seconds, sandbox=chosen)

    originals: list[tuple[Any, Any]] = [(place, place.PyExecutor) for place in (module, tools)]
    for place, _ in originals:
        place.PyExecutor = Installed

    def uninstall() -> None:
        for place, original in originals:
            if place.PyExecutor is Installed:
                place.PyExecutor = original

    return uninstall


def _stdout(execution: Execution) -> str:
    parts = [execution.stdout] if execution.stdout else []
    if execution.ok and execution.value_error is not None:
        parts.append(execution.repr or "")
    elif execution.ok and execution.value is not None:
        try:
            parts.append(json.dumps(execution.value))
        except (TypeError, ValueError):
            parts.append(execution.repr or "")
    return "\n".join(parts)


def _stderr(execution: Execution) -> str:
    text = execution.stderr
    if execution.error is not None:
        text += execution.error.traceback
    elif not execution.ok:
        text += execution.failure or execution.status
    if not execution.session_alive:
        text += "\nThe session has ended: variables and imports are lost."
    return text
