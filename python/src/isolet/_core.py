"""One session of the synchronous API, as `Session`, `Stream` and `Runs` share it."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import _interrupts, _session
from ._link import Box, Link, Run
from ._runs import RefusedError, abandon, advance, ask, show
from ._values import text
from .errors import Interrupted, IsoletError, SessionClosedError, from_wire
from .execution import Execution
from .options import RunOptions, has_callbacks, of_run

if TYPE_CHECKING:
    from ._connection import Registration
    from ._interrupts import Guard
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
        inputs: dict[str, Any] | None,
        later: bool,
        original: Core | None = None,
        saved: str | None = None,
    ) -> None:
        """Opens a session of a sandbox, which is made when its box is filled, or a copy, or one
        that was saved.
        """
        self.link = link
        self.tools: dict[str, Tool] = dict(tools)
        self.number = link.number()
        self.is_dead = False
        self.report: dict[str, Any] = {}
        """What the server says about its isolation."""
        self.dropped: deque[Run] = deque()
        """Runs whose streams were dropped. They may go on."""
        opened = Box()
        # Answers that nobody has looked at. A failure of theirs explains any later one.
        self._opening: tuple[Box, ...] = (sandbox.made, opened)
        self._sandbox = sandbox
        arguments = [self.number, sandbox.number]
        if original is not None:
            link.request(opened, "fork", original.number, self.number)
        elif saved is not None:
            link.request(opened, "restore", *arguments, saved)
        elif inputs is None:
            link.request(opened, "session", *arguments, later=later)
        else:
            link.request(opened, "session", *arguments, inputs, later=later)
        self._finalizer = weakref.finalize(self, link.dropped.append, ("close", self.number))
        self._finalizer.atexit = False

    def fork(self, copies: int) -> list[Core]:
        """Makes copies of the session."""
        self.check_opening()
        if not self._finalizer.alive:
            raise SessionClosedError(
                "the session was closed", "make a new one: `sandbox.session()`"
            )
        made = [
            Core(self.link, self.tools, self._sandbox, None, False, original=self)
            for _ in range(copies)
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
        while self.dropped:
            dropped = self.dropped.popleft()
            self.link.flush()
            abandon(self.link, dropped, guard)
        if not code.isascii():
            text(code, "code")
        arguments = _session.run_arguments(inputs, wire) if inputs or wire else ()
        self.link.start(run, code, arguments)

    def run(self, code: str, options: RunOptions) -> Execution:
        """Runs code, and calls the callbacks."""
        wire = of_run(options)
        if has_callbacks(options):
            wire["stream"] = True
        link = self.link
        run = Run(self.number, self.tools)
        guard = _interrupts.guard()
        try:
            self.begin(run, code, options.get("inputs"), wire, guard)
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
        return self.seen(run, found, guard)

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
