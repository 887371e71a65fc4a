"""A sandbox for FastMCP: `CodeMode(sandbox_provider=isolet.fastmcp.SandboxProvider())`.

Needs FastMCP 4.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import aio
from .policy import Limits
from .tools import Tool

_RUN_SECONDS = 30.0


class SandboxProvider:
    """Runs the code of FastMCP's `CodeMode`, each time in a fresh session of isolet.

    The functions of the server are coroutine functions to the code: `await call_tool(...)`, also
    several at once by `asyncio.gather`. `return` ends the code with its result. Code without one
    returns the value of its last expression, or else what it printed.

    Args:
        timeout: the most seconds that code may run, without those in tools; 30 by default.
        **policy: what the code may do, as for `isolet.Sandbox`: `SandboxProvider(offline=True)`.
    """

    def __init__(self, *, timeout: float | None = None, **policy: Any) -> None:
        policy.setdefault("limits", Limits(run_time=timeout or _RUN_SECONDS))
        self.timeout = timeout
        self._sandbox = aio.Sandbox(**policy)

    async def run(
        self,
        code: str,
        *,
        inputs: dict[str, Any] | None = None,
        external_functions: dict[str, Callable[..., Any]] | None = None,
    ) -> Any:
        """Runs code, and returns its result. If the task is cancelled, the code is stopped.

        Args:
            code: Python.
            inputs: variables that are set before.
            external_functions: functions that the code can await, by name.

        Raises:
            ToolError: the code failed. Its text is the traceback, for the model.
        """
        async with self._sandbox.session(inputs=inputs) as session:
            functions = external_functions or {}
            if functions:
                tools = (Tool(each, name=name, style="async") for name, each in functions.items())
                await session.register(*tools)
            execution = await session.run(code, timeout=self.timeout, allow_return=True)
        if not execution.ok:
            raise _tool_error(execution.text)
        if execution.value_error is not None:
            raise _tool_error(
                f"the result cannot be returned: {execution.value_error}. Return plain data"
            )
        return execution.stdout or None if execution.value is None else execution.value


def _tool_error(text: str) -> Exception:
    from fastmcp.exceptions import ToolError

    return ToolError(text)
