"""Results that come one by one: `Stream` of a run, `Runs` of many."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..execution import Display, Execution, Output

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..journal import Journal
    from ._core import Core
    from ._link import Run


class Stream:
    """What a run writes and displays, as it comes; last, the `Execution`. `async for` takes it."""

    def __init__(
        self,
        core: Core,
        code: str,
        inputs: Mapping[str, Any] | None,
        wire: dict[str, Any],
        journal: Journal | None,
    ) -> None:
        """Starts nothing yet. Use `Session.stream`."""
        self._core = core
        self._journal = journal
        self._arguments = code, inputs, {**wire, "stream": True}
        self._run: Run | None = None
        self._is_over = False
        self._finalizer: Any = None

    def __repr__(self) -> str:
        state = "not started" if self._run is None else "running"
        state = "ended" if self._is_over else state
        return f"<isolet.aio.Stream of session {self._core.number}, {state}>"

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Output | Display | Execution:
        if self._is_over:
            raise StopAsyncIteration
        try:
            run = self._run
            if run is None:
                if self._journal is not None:
                    await self._core.record(self._journal)
                run = self._run = await self._core.begin(*self._arguments)
                dropped = self._core.link.dropped
                self._finalizer = weakref.finalize(self, _drop, run, self._core.dropped, dropped)
                self._finalizer.atexit = False
            found = await self._core.advance(run)
        except BaseException:
            self._end()
            raise
        if isinstance(found, Execution):
            self._end()
        return found

    async def close(self) -> None:
        """Interrupts the run, if it goes on, and waits for its end."""
        if not self._is_over:
            self._end()
            if self._run is not None:
                await self._core.abandon(self._run)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _end(self) -> None:
        self._is_over = True
        if self._finalizer is not None:
            self._finalizer.detach()


def _drop(run: Run, runs: deque[Run], dropped: deque[tuple[str, int]]) -> None:
    """Leaves it to the next run of the session to wait for the end of one that was dropped."""
    runs.append(run)
    dropped.append(("cancel", run.session))


class Runs:
    """The executions of `Sandbox.map`, in the order of the codes. `async for` takes them."""

    def __init__(
        self,
        open_core: Callable[[Mapping[str, Any] | None], Core],
        codes: Iterable[str],
        inputs: Iterable[Mapping[str, Any] | None],
        concurrency: int,
        timeout: float | None,
    ) -> None:
        """Starts nothing yet. Use `Sandbox.map`."""
        self._open = open_core
        self._codes: Iterator[tuple[str, Mapping[str, Any] | None]]
        self._codes = zip(codes, inputs, strict=False)
        self._concurrency = concurrency
        self._timeout = timeout
        self._under_way = 0
        self._tasks: deque[asyncio.Task[Execution]] = deque()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Execution:
        try:
            self._start()
            if not self._tasks:
                raise StopAsyncIteration
            await asyncio.wait([self._tasks[0]])
            return self._tasks.popleft().result()
        except StopAsyncIteration:
            raise
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Ends the runs under way. There will be no further results."""
        self._codes = iter(())
        tasks = list(self._tasks)
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _start(self) -> None:
        """Starts as many runs as may be under way. Results that nobody has taken count."""
        while self._under_way < self._concurrency and len(self._tasks) < 4 * self._concurrency:
            following = next(self._codes, None)
            if following is None:
                return
            self._under_way += 1
            self._tasks.append(asyncio.ensure_future(self._run(*following)))

    async def _run(self, code: str, inputs: Mapping[str, Any] | None) -> Execution:
        core: Core | None = None
        try:
            core = self._open(inputs)
            return await core.run(code, {"timeout": self._timeout})
        finally:
            if core is not None:
                await core.close(wait=False)
            self._under_way -= 1
            self._start()
