"""Runs under way, step by step, for the synchronous API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _interrupts, _session
from ._calls import Call, failure
from ._interrupts import Pressed
from .errors import Interrupted, IsoletError, from_wire
from .execution import Display, Execution, Output
from .options import OutputCallbacks, tell

if TYPE_CHECKING:
    from ._interrupts import Guard
    from ._link import Box, Link, Run


class RefusedError(Exception):
    """The server did not run the code, or the session was lost. `error` is its message."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__()
        self.error = error


def step(link: Link, run: Run, guard: Guard | None) -> Execution | Output | Display | None:
    """Waits for what happens next in a run, and does what it asks for.

    Returns what there is to see, if there is anything.

    Raises:
        RefusedError: there will be no execution.
        IsoletError: the connection has ended.
        Pressed: Ctrl-C was pressed.
    """
    link.wait(run, guard)
    item = run.queue.popleft()
    if type(item) is Call:
        link.tools.serve(item, run, guard)
        return None
    operation = item[0]
    if operation == "ok":
        run.is_over = True
        run.is_nothing = item[2] is None
        return Execution(item[2] or {})
    if operation == "error":
        run.is_over = True
        raise RefusedError(item[2])
    return _session.event(item)


def advance(link: Link, run: Run, guard: Guard | None) -> Execution | Output | Display:
    """Returns what there is to see next in a run. The last is the execution.

    Raises:
        RefusedError: there will be no execution.
        Interrupted: Ctrl-C was pressed twice.
        BaseException: a tool has raised it, and it is no `Exception`.
    """
    try:
        while True:
            try:
                found = step(link, run, guard)
            except Pressed:
                _interrupt(link, run, guard)
                continue
            if found is not None:
                break
        if run.is_over and run.calls:
            _end_calls(link, run, guard)
    except (RefusedError, Interrupted):
        link.tools.cancel_all(run)
        raise
    except BaseException:
        abandon(link, run, guard)
        raise
    if run.fault is not None and run.is_over:
        raise run.fault
    return found


def abandon(link: Link, run: Run, guard: Guard | None) -> None:
    """Ends a run whose result nobody wants: an exception has taken its place.

    Waits for its end, at most for the limit `grace`. Ctrl-C ends the session instead.
    """
    try:
        if run.number and not run.is_over:
            link.post(["cancel", link.number(), run.session])
        while run.number and not run.is_over:
            link.wait(run, guard)
            item = run.queue.popleft()
            if type(item) is Call:
                link.post(failure(item.number, RuntimeError("the run was cancelled")))
            elif item[0] == "ok" or item[0] == "error":
                run.is_over = True
    except (Pressed, IsoletError):
        link.post(["kill", link.number(), run.session])
    _end_calls(link, run, guard)


def show(found: Output | Display, guard: Guard | None, callbacks: OutputCallbacks) -> None:
    """Passes output or a display on to the program."""
    if guard is not None:
        guard.leave()
    try:
        tell(found, callbacks)
    finally:
        if guard is not None:
            guard.enter()


def _interrupt(link: Link, run: Run, guard: Guard | None) -> None:
    """Does what Ctrl-C means: the first time interrupts, the second time ends the session."""
    if guard is not None:
        run.presses += guard.pressed
        guard.pressed = 0
    if run.presses == 1:
        link.post(["cancel", link.number(), run.session])
        return
    link.post(["kill", link.number(), run.session])
    raise Interrupted


def _end_calls(link: Link, run: Run, guard: Guard | None) -> None:
    """Cancels the calls that are left, and waits for those that can be cancelled."""
    try:
        for call in link.tools.cancel_all(run):
            call.wait(guard)
    except Pressed:
        run.presses += 1


def ask(link: Link, box: Box) -> Any:
    """Waits for the answer to a request, and returns its value.

    Raises:
        IsoletError: the request failed, or the connection has ended.
        KeyboardInterrupt: Ctrl-C was pressed. Nobody will see the answer.
    """
    guard = _interrupts.guard()
    try:
        link.wait(box, guard)
    except Pressed:
        raise KeyboardInterrupt from None
    finally:
        if guard is not None:
            guard.leave()
    if guard is not None and guard.pressed:
        raise KeyboardInterrupt
    message = box.queue[0]
    if message[0] == "error":
        raise from_wire(message[2])
    return message[2]
