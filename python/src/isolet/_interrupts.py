"""Ctrl-C while the main thread waits for a guest.

Python's own handler raises `KeyboardInterrupt` between any two steps of a program, also between
those that read a message and pass it on. While this package waits, a handler takes its place that
raises only where nothing can get lost.
"""

from __future__ import annotations

import importlib
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

try:
    # Those of `signal` convert numbers to enums, which takes as long as all the rest of a run.
    _raw: Any = importlib.import_module("_signal")
except ImportError:
    _raw = signal

_set: Callable[[int, Any], Any] = _raw.signal
_get: Callable[[int], Any] = _raw.getsignal
_SIGINT = int(signal.SIGINT)


SIGNAL_SECONDS = 0.2
"""How often the main thread looks for signals while it waits. A signal that arrives just before a
system call begins does not interrupt that call."""


class Pressed(BaseException):
    """Ctrl-C was pressed while `Guard.armed`."""


class Guard:
    """Stands for Python's handler of Ctrl-C while it is `enter`ed."""

    __slots__ = ("armed", "pressed")

    def __init__(self) -> None:
        self.armed = False
        """Whether the handler raises `Pressed`. Set it only where nothing can get lost."""
        self.pressed = 0
        """How often Ctrl-C was pressed and nobody was told."""

    def arm(self) -> None:
        """Lets the handler raise from now on.

        Raises:
            Pressed: Ctrl-C was pressed before.
        """
        self.armed = True
        if self.pressed:
            self.armed = False
            raise Pressed

    def acquire(self, lock: threading.Lock) -> None:
        """Waits for a lock.

        Raises:
            Pressed: Ctrl-C was pressed.
        """
        try:
            self.arm()
            while not lock.acquire(timeout=SIGNAL_SECONDS):
                pass
        finally:
            self.armed = False

    def enter(self) -> None:
        """Takes the place of Python's handler."""
        _set(_SIGINT, self._handle)

    def leave(self) -> None:
        """Gives the place back, such as while code of the program runs."""
        self.armed = False
        _set(_SIGINT, signal.default_int_handler)

    def _handle(self, _signal: int, _frame: object) -> None:
        self.pressed += 1
        if self.armed:
            self.armed = False
            raise Pressed


def guard() -> Guard | None:
    """Returns a guard that was entered.

    There is none in other threads than the main one, and if the program has a handler of its own.
    """
    if threading.get_ident() != _main:
        return None
    if _get(_SIGINT) is not signal.default_int_handler:
        return None
    made = Guard()
    try:
        made.enter()
    except ValueError:
        # The main thread of another interpreter than the main one.
        return None
    return made


_main = threading.main_thread().ident


def _after_fork() -> None:
    global _main
    _main = threading.main_thread().ident


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
