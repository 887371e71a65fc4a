"""An executor for the shell tool of OpenAI Agents: `ShellTool(executor=ShellExecutor(session))`.

The model's commands run in the session's shell, which starts no process. Needs OpenAI Agents 0.24.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from agents import ShellCallOutcome, ShellCommandOutput, ShellCommandRequest, ShellResult

from ._scripts import status, with_notes
from .session import Session

if TYPE_CHECKING:
    from . import aio
    from .execution import Execution


class ShellExecutor:
    """Runs the commands of a call one after the other, each in a shell of its own.

    All see the session's files. Calls wait for each other. A command that does not end in time ends
    its call. If a limit has ended the session, the next command starts it anew.

    Args:
        session: the session, also one of `isolet.aio`.
        timeout: the most seconds that a command may take if the model does not say; the limit
            `run_time` by default, which bounds both.
        max_chars: the most characters of a call's output that the model sees if it does not say,
            20,000 by default.
    """

    def __init__(
        self,
        session: Session | aio.Session,
        *,
        timeout: float | None = None,
        max_chars: int = 20_000,
    ) -> None:
        self._session = session
        self._timeout = timeout
        self._max_chars = max_chars
        self._thread_lock = threading.Lock()
        self._lock = asyncio.Lock()

    async def __call__(self, request: ShellCommandRequest) -> ShellResult:
        """Returns what the commands of a call did. The SDK leaves out what is too long."""
        action = request.data.action
        timeout = self._timeout if action.timeout_ms is None else action.timeout_ms / 1000
        outputs: list[ShellCommandOutput] = []
        for command in action.commands:
            execution = await self._run(command, timeout)
            outputs.append(_output(command, execution))
            if execution.status == "timeout":
                break
        length = action.max_output_length
        return ShellResult(outputs, self._max_chars if length is None else length)

    async def _run(self, command: str, timeout: float | None) -> Execution:
        session = self._session
        if isinstance(session, Session):
            return await asyncio.to_thread(self._run_in_thread, session, command, timeout)
        async with self._lock:
            if not session.alive:
                await session.reset()
            return await session.sh(command, program=True, timeout=timeout)

    def _run_in_thread(self, session: Session, command: str, timeout: float | None) -> Execution:
        with self._thread_lock:
            if not session.alive:
                session.reset()
            return session.sh(command, program=True, timeout=timeout)


def _output(command: str, execution: Execution) -> ShellCommandOutput:
    outcome = ShellCallOutcome("exit", status(execution))
    if execution.status == "timeout":
        outcome = ShellCallOutcome("timeout")
    stderr = with_notes(execution.stderr, execution)
    return ShellCommandOutput(execution.stdout, stderr, outcome, command)
