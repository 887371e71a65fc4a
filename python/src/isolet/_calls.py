"""Calls of tools, for the synchronous API.

The thread that waits for a run serves its calls. Those that come while it does go to further
threads, and coroutines to an event loop.
"""

from __future__ import annotations

import inspect
import sys
import threading
import time
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any

from ._pool import pool
from ._values import shown
from .errors import IsoletError, TransferError
from .tools import current_call

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from ._interrupts import Guard
    from ._link import Box, Link, Run
    from ._wire import Message
    from .tools import Tool

_TICK_SECONDS = 0.001
_IDLE_TICKS = 50
_MOST_BASES = 16
_MOST_EXCEPTIONS = 32  # of a group
_DEEPEST_GROUP = 8


class Call:
    """A call of a tool that is not over."""

    __slots__ = ("arguments", "finished", "id", "is_over", "name", "number", "run", "task")

    def __init__(
        self, number: int, run: Run, name: str, arguments: dict[str, Any], call_id: int
    ) -> None:
        self.number = number
        self.id = call_id
        """Its number in the session, for the tool."""
        self.run = run
        self.name = name
        self.arguments = arguments
        self.is_over = False
        """Whether the guest no longer waits for an answer."""
        self.task: Any = None
        self.finished: threading.Lock | None = None
        """Locked until the task has ended, if there is one."""

    def wait(self, guard: Guard | None) -> None:
        """Waits until the task has ended.

        Raises:
            Pressed: Ctrl-C was pressed.
        """
        if self.finished is None:
            return
        if guard is None:
            self.finished.acquire()
        else:
            guard.acquire(self.finished)


class Tools:
    """The calls of tools on a connection."""

    def __init__(self, link: Link) -> None:
        self._link = link
        # A finalizer of the program may run while it is held, and run code.
        self._lock = threading.RLock()
        self._calls: dict[int, Call] = {}
        # How many threads that would read otherwise are in tools, and how many there were in all.
        self._running = 0
        self._begun = 0
        self._is_watched = False

    def arrived(self, call: Call, box: Box) -> bool:
        """Takes a call. Returns `True` if the thread that waits at `box` is to `serve` it."""
        with self._lock:
            if call.number in self._calls:
                return False
            self._calls[call.number] = call
            call.run.calls[call.number] = call
            context = box.context
            if not box.busy:
                box.queue.append(call)
                return True
        self._start(call, context.copy())
        return False

    def serve(self, call: Call, box: Box, guard: Guard | None) -> None:
        """Serves a call in this thread, and meanwhile further ones in others."""
        if call.is_over:
            self._forget(call)
            return
        tool = call.run.tools.get(call.name)
        if tool is not None and tool.is_coroutine:
            self._start(call, copy_context())
            return
        self.leave(box)
        try:
            self._perform(call, guard)
        finally:
            self.return_to(box)

    def leave(self, box: Box) -> None:
        """Notes that the thread that waits at `box` is going to do something else."""
        context = copy_context()
        with self._lock:
            box.busy, box.context = True, context
            calls = [item for item in box.queue if type(item) is Call]
            for call in calls:
                box.queue.remove(call)
            self._running += 1
            self._begun += 1
            is_watched, self._is_watched = self._is_watched, True
        for call in calls:
            self._start(call, context.copy())
        if not is_watched:
            pool.start(self._watch)

    def return_to(self, box: Box) -> None:
        """Notes that the thread has returned."""
        with self._lock:
            box.busy, box.context = False, None
            self._running -= 1

    def uncalled(self, number: int) -> None:
        """Cancels a call that the guest no longer waits for."""
        with self._lock:
            call = self._calls.get(number)
        if call is not None:
            self._cancel(call)

    def cancel_all(self, run: Run) -> list[Call]:
        """Cancels the calls of a run. Returns those that can be waited for."""
        with self._lock:
            calls = list(run.calls.values())
        for call in calls:
            self._cancel(call)
            self._forget(call)
        return [call for call in calls if call.finished is not None]

    def _start(self, call: Call, context: Context) -> None:
        tool = call.run.tools.get(call.name)
        if tool is not None and tool.is_coroutine:
            self._start_task(call, tool, context, None)
        else:
            pool.start(lambda: context.run(self._perform, call, None))

    def _perform(self, call: Call, guard: Guard | None) -> None:
        """Calls the function, and answers."""
        tool = call.run.tools.get(call.name)
        fault = None
        try:
            if tool is None:
                raise RuntimeError(f"the tool `{call.name}` is gone")
            # The context may be that of whoever runs the code.
            token = current_call.set(call.id)
            if guard is not None:
                guard.leave()
            try:
                value = tool.call(call.arguments)
            finally:
                if guard is not None:
                    guard.enter()
                current_call.reset(token)
            if inspect.iscoroutine(value):
                self._start_task(call, tool, copy_context(), value)
                return
            message = ["answer", call.number, tool.result(value)]
        except Exception as error:
            message = failure(call.number, error)
        except BaseException as error:
            message, fault = failure(call.number, error), error
        self._answer(call, message, fault)

    def _start_task(
        self, call: Call, tool: Tool, context: Context, awaitable: Awaitable[Any] | None
    ) -> None:
        import asyncio

        from ._loop import loop

        finished = threading.Lock()
        finished.acquire()
        call.finished = finished

        async def main() -> None:
            current_call.set(call.id)
            fault = None
            try:
                value = await (tool.call(call.arguments) if awaitable is None else awaitable)
                message = ["answer", call.number, tool.result(value)]
            except Exception as error:
                message = failure(call.number, error)
            except BaseException as error:
                message = failure(call.number, error)
                fault = None if call.is_over else error
            try:
                self._answer(call, message, fault)
            finally:
                finished.release()

        def begin() -> None:
            call.task = asyncio.ensure_future(main())

        loop().call_soon_threadsafe(begin, context=context)

    def _answer(self, call: Call, message: Message, fault: BaseException | None) -> None:
        self._forget(call)
        if fault is not None and call.run.fault is None:
            call.run.fault = fault
        try:
            self._link.post(message)
        except IsoletError as error:
            self._link.post(failure(call.number, error))
        if fault is not None:
            self._link.post(["cancel", self._link.number(), call.run.session])

    def _cancel(self, call: Call) -> None:
        """Cancels a call, once: what it does then is not to be interrupted again."""
        with self._lock:
            was_over, call.is_over = call.is_over, True
        if was_over:
            return
        if call.finished is not None:
            from ._loop import loop

            def cancel() -> None:
                # By then it has begun.
                call.task.cancel()

            loop().call_soon_threadsafe(cancel)

    def _forget(self, call: Call) -> None:
        with self._lock:
            self._calls.pop(call.number, None)
            call.run.calls.pop(call.number, None)

    def _watch(self) -> None:
        """Reads while the threads that would do so are in tools, once these take their time."""
        idle = 0
        while idle < _IDLE_TICKS:
            begun = self._begun
            time.sleep(_TICK_SECONDS)
            if not self._running:
                idle += 1
            else:
                idle = 0
                if begun == self._begun:
                    self._link.read_while(lambda: self._running > 0)
        with self._lock:
            self._is_watched = self._running > 0
        if self._is_watched:
            pool.start(self._watch)


def failure(call: int, error: BaseException) -> Message:
    """Returns the message that a tool has raised an exception."""
    return ["fail", call, *described(error)]


def described(error: BaseException, depth: int = _DEEPEST_GROUP) -> list[Any]:
    """Returns the name, text and bases of an exception, and of a group those of its exceptions."""
    name = type(error).__name__
    if isinstance(error, TransferError):
        return ["TypeError", shown(str(error)), []]
    try:
        is_key = isinstance(error, KeyError) and len(error.args) == 1
        # The text of a `KeyError` is the `repr` of its argument, and would be so once more.
        text = error.args[0] if is_key and type(error.args[0]) is str else str(error)
    except Exception as broken:
        text = f"its text cannot be made: {type(broken).__name__}"
    found: list[Any] = [shown(name), shown(text), bases(type(error))]
    if sys.version_info >= (3, 11) and isinstance(error, ExceptionGroup) and depth:
        group: ExceptionGroup[Exception] = error
        members = group.exceptions[:_MOST_EXCEPTIONS]
        found.append([described(each, depth - 1) for each in members])
    return found


def bases(kind: type[BaseException]) -> list[str]:
    """Returns the exceptions of the standard library that an exception is based on, the nearest
    first. The guest has them, too.
    """
    names: list[str] = []
    for base in kind.__mro__:
        module = str(base.__module__)
        if not issubclass(base, Exception):
            continue
        if module == "builtins":
            names.append(base.__qualname__)
        elif module.partition(".")[0] in sys.stdlib_module_names:
            names.append(f"{module}.{base.__qualname__}")
    return [shown(name) for name in names[:_MOST_BASES]]
