"""One session of the asynchronous API, as `Session`, `Stream` and `Runs` share it."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections import deque
from collections.abc import Mapping
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from .. import _session
from .._values import text
from ..errors import IsoletError, SessionClosedError, from_wire
from ..execution import Display, Execution, Output
from ..options import OutputCallbacks, RunOptions, has_callbacks, of_go_on, of_run, tell
from ._link import Link, Run

if TYPE_CHECKING:
    from .._connection import Registration
    from .._session import Beginning
    from ..journal import Journal
    from ..tools import Tool


class Core:
    """A session on a server. It is closed some time after the last reference to it has gone."""

    __slots__ = (
        "__weakref__",
        "_assigned",
        "_finalizer",
        "_opening",
        "_sandbox",
        "dropped",
        "is_dead",
        "journal",
        "link",
        "number",
        "report",
        "tools",
    )

    def __init__(
        self,
        link: Link,
        tools: Mapping[str, Tool],
        sandbox: Registration[asyncio.Future[Any]],
        beginning: Beginning,
        later: bool,
    ) -> None:
        """Opens a session of a sandbox, which is made when its future is done."""
        self.link = link
        self.tools: dict[str, Tool] = dict(tools)
        self.number = link.number()
        self.is_dead = False
        self.report: dict[str, Any] = {}
        """What the server says about its isolation."""
        self.dropped: deque[Run] = deque()
        """Runs whose streams were dropped. They may go on."""
        self.journal = beginning.journal
        """The path of the journal that it is recorded to, as far as is known."""
        arguments = beginning.arguments(self.number, sandbox.number)
        opened = link.request(beginning.operation, *arguments, later=later)
        # Answers that nobody has looked at. A failure of theirs explains any later one.
        self._opening: tuple[asyncio.Future[Any], ...] = (sandbox.made, opened)
        self._sandbox = sandbox
        self._assigned: deque[asyncio.Future[Any]] = deque()
        self._finalizer = weakref.finalize(self, link.dropped.append, ("close", self.number))
        self._finalizer.atexit = False

    async def fork(self, copies: int) -> list[Core]:
        """Makes copies of the session."""
        await self.check_opening()
        if not self._finalizer.alive:
            raise SessionClosedError(
                "the session was closed", "make a new one: `sandbox.session()`"
            )
        begun = _session.copied(self.number)
        made = [
            Core(self.link, self.tools, self._sandbox, begun, later=False) for _ in range(copies)
        ]
        for copy in made:
            await copy.check_opening()
        return made

    @property
    def is_alive(self) -> bool:
        """Whether it can run code, as far as is known."""
        return not self.is_dead and self.link.ended is None

    async def _end_dropped(self) -> None:
        """Waits for assignments, and for the end of runs whose streams were dropped."""
        if self._assigned:
            await self.settle()
        while self.dropped:
            dropped = self.dropped.popleft()
            self.link.flush()
            await self.abandon(dropped)

    async def begin(
        self,
        code: str,
        inputs: Mapping[str, Any] | None,
        wire: dict[str, Any] | None,
    ) -> Run:
        """Sends a run, once one whose stream was dropped has ended."""
        if self._assigned or self.dropped:
            await self._end_dropped()
        if type(code) is not str or not code.isascii():
            text(code, "code")
        arguments = _session.run_arguments(inputs, wire) if inputs or wire else ()
        return self._start("run", code, *arguments)

    def _start(self, operation: str, *arguments: Any) -> Run:
        run = Run(self.number, self.tools, copy_context() if self.tools else None)
        self.link.start(run, operation, *arguments)
        return run

    async def run(
        self, code: str, options: RunOptions, journal: Journal | None = None
    ) -> Execution:
        """Runs code, which is recorded if there is a journal, and calls the callbacks."""
        wire = of_run(options)
        if has_callbacks(options):
            wire["stream"] = True
        if journal is not None:
            await self.record(journal)
        return await self._see(await self.begin(code, options.get("inputs"), wire), options)

    async def go_on(self, callbacks: OutputCallbacks) -> Execution | None:
        """Goes on with the run of a journal, if there is one, and calls the callbacks."""
        wire = of_go_on(callbacks)
        await self._end_dropped()
        run = self._start("go_on", wire)
        execution = await self._see(run, callbacks)
        return None if run.is_nothing else execution

    async def record(self, journal: Journal) -> None:
        """Records the session from here on, if it is not recorded to this journal already."""
        path = journal.absolute
        if self.journal == path:
            return
        if self.journal is not None:
            raise _session.recorded_elsewhere(self.journal)
        await self._end_dropped()
        # If nobody waits for the answer any more, it is recorded all the same.
        self.journal = path
        try:
            await self.ask("record", journal.to_wire())
        except IsoletError:
            self.journal = None
            raise

    async def end_recording(self) -> None:
        """Records the session no longer."""
        await self.ask("end_recording")
        self.journal = None

    async def _see(self, run: Run, options: OutputCallbacks) -> Execution:
        """Waits for the end of a run, and calls the callbacks."""
        while True:
            found = await self.advance(run)
            if isinstance(found, Execution):
                return found
            try:
                tell(found, options)
            except BaseException:
                await self.abandon(run)
                raise

    async def advance(self, run: Run) -> Execution | Output | Display:
        """Returns what there is to see next in a run. The last is the execution.

        Raises:
            IsoletError: there will be no execution.
            CancelledError: the task was cancelled. The run has ended, or the session.
            BaseException: a tool has raised it, and it is no `Exception`.
        """
        try:
            await self.link.drain()
            message = await run.get()
            if message and message[0] not in ("ok", "error"):
                return _session.event(message)
            run.is_over = True
            if run.calls:
                await self.link.end_calls(run)
        except BaseException:
            await self.abandon(run)
            raise
        if not message:
            raise self.link.error()
        if run.fault is not None:
            raise run.fault
        if message[0] == "error":
            raise await self._failure(message[2])
        run.is_nothing = message[2] is None
        execution = Execution(message[2] or {})
        if not execution.session_alive:
            self.is_dead = True
        return execution

    async def abandon(self, run: Run) -> None:
        """Ends a run whose result nobody wants: an exception has taken its place.

        Waits for its end, at most for the limit `grace`. If it is cancelled, it ends the session.
        """
        try:
            if run.number and not run.is_over:
                self.link.post(["cancel", self.link.number(), run.session])
            while run.number and not run.is_over:
                message = await run.get()
                run.is_over = not message or message[0] in ("ok", "error")
        except BaseException:
            self.is_dead = True
            self.link.post(["kill", self.link.number(), run.session])
            raise
        finally:
            await self.link.end_calls(run)

    async def check_opening(self) -> None:
        """Waits until it is open. Raises why it could not be opened, if it could not."""
        for future in self._opening:
            try:
                # Other tasks may wait for it too.
                self.report = await asyncio.shield(future)
            except IsoletError:
                self.is_dead = True
                raise
        self._opening = ()

    async def settle(self) -> None:
        """Waits for assignments. Raises why one failed."""
        while self._assigned:
            try:
                await self._assigned.popleft()
            except IsoletError as error:
                raise _session.unless_closed(error, not self._finalizer.alive) from None

    async def ask(self, operation: str, *arguments: Any) -> Any:
        """Makes a request and returns its answer."""
        if self._assigned:
            await self.settle()
        future = self.link.request(operation, self.number, *arguments)
        await self.link.drain()
        try:
            return await future
        except IsoletError as error:
            await self.check_opening()
            raise _session.unless_closed(error, not self._finalizer.alive) from None

    def assign(self, name: str, value: Any) -> None:
        """Sets a variable. The next request tells of a failure."""
        self._assigned.append(self.link.request("set", self.number, {name: value}))

    async def close(self, wait: bool) -> None:
        """Ends the session, and a run in it."""
        self.is_dead = True
        if self._finalizer.detach() is None or self.link.ended is not None:
            return
        if not wait:
            self.link.post(["close", self.link.number(), self.number])
            return
        try:
            await self.link.request("close", self.number)
        except IsoletError:
            # It could not be opened, or its server has gone.
            return

    async def _failure(self, error: dict[str, Any]) -> IsoletError:
        if not error.get("session_alive", True):
            self.is_dead = True
        try:
            await self.check_opening()
        except IsoletError as reason:
            return reason
        return _session.unless_closed(from_wire(error), not self._finalizer.alive)


async def contents(data: str | bytes | os.PathLike[str]) -> bytes:
    """Returns what a file is to contain. A file of the host is read by a thread."""
    if isinstance(data, os.PathLike):
        return await asyncio.to_thread(_session.contents, data)
    return _session.contents(data)
