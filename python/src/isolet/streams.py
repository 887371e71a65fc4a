"""Results that come one by one: `Stream` of a run, `Runs` of many."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import _interrupts
from ._calls import Call, Tools
from ._interrupts import Guard, Pressed
from ._link import Box, Run
from ._runs import RefusedError, abandon, advance
from .errors import Interrupted
from .execution import Display, Execution, Output
from .options import of_run

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._core import Core
    from .journal import Journal


class Stream:
    """What a run writes and displays, as it comes; last, the `Execution`. An iterator."""

    def __init__(
        self,
        core: Core,
        code: str,
        inputs: Mapping[str, Any] | None,
        wire: dict[str, Any],
        journal: Journal | None,
    ) -> None:
        """Starts the run. Use `Session.stream`."""
        if journal is not None:
            core.record(journal)
        self._core = core
        self._run = Run(core.number, core.tools)
        self._is_over = False
        guard = _interrupts.guard()
        try:
            core.begin(self._run, code, inputs, {**wire, "stream": True}, guard)
        finally:
            if guard is not None:
                guard.leave()
        self._finalizer = weakref.finalize(
            self, _drop_run, self._run, core.dropped, core.link.dropped
        )
        self._finalizer.atexit = False

    def __repr__(self) -> str:
        state = "ended" if self._is_over else "running"
        return f"<isolet.Stream of session {self._core.number}, {state}>"

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Output | Display | Execution:
        if self._is_over:
            raise StopIteration
        guard = _interrupts.guard()
        try:
            found = advance(self._core.link, self._run, guard)
        except (RefusedError, Interrupted) as error:
            self._end()
            raise self._core.failure(error) from None
        except BaseException:
            self._end()
            raise
        finally:
            if guard is not None:
                guard.leave()
        if not isinstance(found, Execution):
            if guard is not None and guard.pressed:
                self.close()
                raise KeyboardInterrupt
            return found
        self._end()
        return self._core.seen(self._run, found, guard)

    def close(self) -> None:
        """Interrupts the run, if it goes on, and waits for its end."""
        if not self._is_over:
            self._end()
            abandon(self._core.link, self._run, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _end(self) -> None:
        self._is_over = True
        self._finalizer.detach()


def _drop_run(run: Run, runs: deque[Run], dropped: deque[tuple[str, int]]) -> None:
    """Leaves it to the next run of the session to wait for the end of one that was dropped."""
    runs.append(run)
    dropped.append(("cancel", run.session))


class Runs:
    """The executions of `Sandbox.map`, in the order of the codes. An iterator."""

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
        self._box = Box()
        # Where calls are served by other threads at the moment.
        self._left: Tools | None = None
        self._under_way: dict[int, tuple[Core, Run]] = {}
        # The numbers of the runs in their order, and what became of those that have ended.
        self._order: deque[int] = deque()
        self._ended: dict[int, Execution] = {}

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Execution:
        guard = _interrupts.guard()
        try:
            self._return()
            self._start(guard)
            while self._order and self._order[0] not in self._ended:
                self._step(guard)
                self._start(guard)
            if not self._order:
                raise StopIteration
            self._leave()
            found = self._ended.pop(self._order.popleft())
        except Pressed:
            self.close()
            raise Interrupted from None
        except StopIteration:
            raise
        except BaseException:
            self.close()
            raise
        finally:
            if guard is not None:
                guard.leave()
        if guard is not None and guard.pressed:
            self.close()
            raise Interrupted(found)
        return found

    def close(self) -> None:
        """Ends the runs under way. There will be no further results."""
        self._codes = iter(())
        self._order.clear()
        self._return()
        for core, run in self._under_way.values():
            core.close(wait=False)
            core.link.tools.cancel_all(run)
        self._under_way.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, guard: Guard | None) -> None:
        """Starts as many runs as may be under way. Results that nobody has taken count."""
        most = 4 * self._concurrency
        while len(self._under_way) < self._concurrency and len(self._order) < most:
            following = next(self._codes, None)
            if following is None:
                return
            code, inputs = following
            core = self._open(inputs)
            run = Run(core.number, core.tools, self._box)
            core.begin(run, code, None, of_run({"timeout": self._timeout}), guard)
            self._under_way[run.number] = core, run
            self._order.append(run.number)

    def _step(self, guard: Guard | None) -> None:
        """Waits for what happens next in any of the runs."""
        link = next(iter(self._under_way.values()))[0].link
        link.wait(self._box, guard)
        item = self._box.queue.popleft()
        if type(item) is Call:
            link.tools.serve(item, self._box, guard)
            return
        core, run = self._under_way.pop(item[1])
        core.close(wait=False)
        for call in link.tools.cancel_all(run):
            call.wait(guard)
        if item[0] == "error":
            raise core.failure(RefusedError(item[2]))
        if run.fault is not None:
            raise run.fault
        self._ended[run.number] = Execution(item[2])

    def _leave(self) -> None:
        """Leaves calls of tools to other threads while the program uses a result."""
        for core, _ in self._under_way.values():
            self._left = core.link.tools
            self._left.leave(self._box)
            return

    def _return(self) -> None:
        if self._left is not None:
            self._left.return_to(self._box)
            self._left = None
