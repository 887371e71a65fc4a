"""Calls of tools by a run on a node. Each is served in a thread, a coroutine in the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Mapping
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from ._calls import described
from ._http import body
from ._loop import loop
from ._pool import pool
from .errors import ConfigError, IsoletError, TransferError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from .tools import Tool


class Calls:
    """The calls of tools in a run."""

    def __init__(self, tools: Mapping[str, Tool], ask: Callable[[str, str, bytes], bytes]) -> None:
        self._tools = tools
        self._ask = ask
        # The calls under way, those of coroutines with their tasks.
        self._tasks: dict[int, Future[Any] | None] = {}
        self._cancelled: set[int] = set()
        self.fault: BaseException | None = None
        """What a tool has raised, if that is no `Exception`: it goes on to who has run the code."""

    def start(self, number: int, name: str, arguments: dict[str, Any]) -> None:
        self._tasks[number] = None
        context = copy_context()
        pool.start(lambda: context.run(self._serve, number, name, arguments))

    def cancel(self, number: int) -> None:
        """Cancels a call that nobody waits for any more, if it is a coroutine."""
        # In this order, as `_serve` has the other one.
        self._cancelled.add(number)
        task = self._tasks.get(number)
        if task is not None:
            task.cancel()

    def cancel_all(self) -> None:
        for number in list(self._tasks):
            self.cancel(number)

    def _serve(self, number: int, name: str, arguments: dict[str, Any]) -> None:
        try:
            tool = self._tools[name]
            value = tool.call(arguments)
            if inspect.iscoroutine(value):
                task = self._tasks[number] = asyncio.run_coroutine_threadsafe(value, loop())
                if number in self._cancelled:
                    task.cancel()
                value = task.result()
            answer = {"value": tool.result(value)}
        except BaseException as error:
            answer = _failed(error)
            if not isinstance(error, Exception):
                self.fault = error
        self._tasks.pop(number, None)
        # If the run has ended, or the node, the run's own answer says so.
        with contextlib.suppress(IsoletError):
            try:
                self._ask("POST", f"/calls/{number}", body(answer))
            except TransferError as error:
                self._ask("POST", f"/calls/{number}", body(_failed(error)))
            if self.fault is not None:
                self._ask("POST", "/interrupt", b"")


def _failed(error: BaseException) -> dict[str, Any]:
    return {"error": _fields(*described(error))}


def _fields(kind: str, text: str, bases: list[str], exceptions: Any = ()) -> dict[str, Any]:
    fields: dict[str, Any] = {"type": kind, "message": text, "bases": bases}
    if exceptions:
        fields["exceptions"] = [_fields(*each) for each in exceptions]
    return fields


def counts(cursor: str) -> tuple[int, int, int]:
    """Reads the cursor of a durable run: bytes of output, displays, and the last call."""
    try:
        output, displays, call = map(int, cursor.split("-"))
    except ValueError:
        raise ConfigError(f"`cursor` is {cursor!r}, and has to be that of a session") from None
    return output, displays, call
