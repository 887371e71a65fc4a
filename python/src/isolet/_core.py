"""One session of the synchronous API, as `Session`, `Stream` and `Runs` share it."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from . import _interrupts, _session
from ._link import Box, Link, Run
from ._runs import RefusedError, abandon, advance, ask, show
from ._values import text
from .errors import Interrupted, IsoletError, SessionClosedError, from_wire
from .execution import Execution
from .options import OutputCallbacks, RunOptions, has_callbacks, of_go_on, of_run

if TYPE_CHECKING:
    from ._connection import Registration
    from ._interrupts import Guard
    from ._session import Beginning
    from .journal import Journal
    from .tools import Tool


class Core:
    """A session on a server. It is closed some time after the last reference to it has gone."""

    __slots__ = (
        "__weakref__",
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
        sandbox: Registration[Box],
        beginning: Beginning,
        later: bool,
    ) -> None:
        """Opens a session of a sandbox, which is made when its box is filled."""
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
        opened = Box()
        # Answers that nobody has looked at. A failure of theirs explains any later one.
        self._opening: tuple[Box, ...] = (sandbox.made, opened)
        self._sandbox = sandbox
        arguments = beginning.arguments(self.number, sandbox.number)
        link.request(opened, beginning.operation, *arguments, later=later)
        self._finalizer = weakref.finalize(self, link.dropped.append, ("close", self.number))
        self._finalizer.atexit = False

    def fork(self, copies: int) -> list[Core]:
        """Makes copies of the session."""
        self.check_opening()
        if not self._finalizer.alive:
            raise SessionClosedError(
                "the session was closed", "make a new one: `sandbox.session()`"
            )
        begun = _session.copied(self.number)
        made = [
            Core(self.link, self.tools, self._sandbox, begun, later=False) for _ in range(copies)
        ]
        for copy in made:
            copy.check_opening()
        return made

    @property
    def is_alive(self) -> bool:
        """Whether it can run code, as far as is known."""
        return not self.is_dead and self.link.ended is None

    def begin(
        self,
        run: Run,
        code: str,
        inputs: Mapping[str, Any] | None,
        wire: dict[str, Any] | None,
        guard: Guard | None,
    ) -> None:
        """Sends a run, once one whose stream was dropped has ended."""
        self._end_dropped(guard)
        if type(code) is not str or not code.isascii():
            text(code, "code")
        arguments = _session.run_arguments(inputs, wire) if inputs or wire else ()
        self.link.start(run, "run", code, *arguments)

    def run(self, code: str, options: RunOptions, journal: Journal | None = None) -> Execution:
        """Runs code, which is recorded if there is a journal, and calls the callbacks."""
        wire = of_run(options)
        if has_callbacks(options):
            wire["stream"] = True
        if journal is not None:
            self.record(journal)

        def begin(run: Run, guard: Guard | None) -> None:
            self.begin(run, code, options.get("inputs"), wire, guard)

        return self._see(begin, options)[1]

    def go_on(self, callbacks: OutputCallbacks) -> Execution | None:
        """Goes on with the run of a journal, if there is one, and calls the callbacks."""
        wire = of_go_on(callbacks)

        def begin(run: Run, guard: Guard | None) -> None:
            self._end_dropped(guard)
            self.link.start(run, "go_on", wire)

        run, execution = self._see(begin, callbacks)
        return None if run.is_nothing else execution

    def record(self, journal: Journal) -> None:
        """Records the session from here on, if it is not recorded to this journal already."""
        path = journal.absolute
        if self.journal == path:
            return
        if self.journal is not None:
            raise _session.recorded_elsewhere(self.journal)
        self._end_dropped(None)
        # If nobody waits for the answer any more, it is recorded all the same.
        self.journal = path
        try:
            self.ask("record", journal.to_wire())
        except IsoletError:
            self.journal = None
            raise

    def end_recording(self) -> None:
        """Records the session no longer."""
        self.ask("end_recording")
        self.journal = None

    def _end_dropped(self, guard: Guard | None) -> None:
        """Waits for the end of runs whose streams were dropped."""
        while self.dropped:
            dropped = self.dropped.popleft()
            self.link.flush()
            abandon(self.link, dropped, guard)

    def _see(
        self, begin: Callable[[Run, Guard | None], None], options: OutputCallbacks
    ) -> tuple[Run, Execution]:
        """Begins a run, waits for its end, and calls the callbacks."""
        link = self.link
        run = Run(self.number, self.tools)
        guard = _interrupts.guard()
        try:
            begin(run, guard)
            found = advance(link, run, guard)
            while not isinstance(found, Execution):
                try:
                    show(found, guard, options)
                except BaseException:
                    abandon(link, run, guard)
                    raise
                found = advance(link, run, guard)
        except (RefusedError, Interrupted) as error:
            raise self.failure(error) from None
        finally:
            if guard is not None:
                guard.leave()
        return run, self.seen(run, found, guard)

    def seen(self, run: Run, execution: Execution, guard: Guard | None) -> Execution:
        """Returns the execution of a run, unless Ctrl-C was pressed meanwhile."""
        if not execution.session_alive:
            self.is_dead = True
        if guard is not None and (run.presses or guard.pressed):
            raise Interrupted(execution)
        return execution

    def failure(self, error: RefusedError | Interrupted) -> BaseException:
        """Returns what to raise for a run without an execution."""
        if isinstance(error, Interrupted):
            self.is_dead = True
            return error
        if not error.error.get("session_alive", True):
            self.is_dead = True
        try:
            self.check_opening()
        except IsoletError as reason:
            return reason
        return _session.unless_closed(from_wire(error.error), not self._finalizer.alive)

    def check_opening(self) -> None:
        """Waits until it is open. Raises why it could not be opened, if it could not."""
        for box in self._opening:
            try:
                self.report = ask(self.link, box)
            except IsoletError:
                self.is_dead = True
                raise
        self._opening = ()

    def ask(self, operation: str, *arguments: Any) -> Any:
        """Makes a request and returns its answer."""
        box = Box()
        self.link.request(box, operation, self.number, *arguments)
        try:
            return ask(self.link, box)
        except IsoletError as error:
            self.check_opening()
            raise _session.unless_closed(error, not self._finalizer.alive) from None

    def close(self, wait: bool) -> None:
        """Ends the session, and a run in it."""
        self.is_dead = True
        if self._finalizer.detach() is None or self.link.ended is not None:
            return
        if not wait:
            self.link.post(["close", self.link.number(), self.number])
            return
        box = Box()
        try:
            self.link.request(box, "close", self.number)
            ask(self.link, box)
        except IsoletError:
            # It could not be opened, or its server has gone.
            return


contents = _session.contents
"""What a file is to contain."""
