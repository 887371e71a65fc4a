"""How long a thread looks for the server's answer before it sleeps.

Waking a thread takes 20 to 50 µs, a third of a short run.
"""

from __future__ import annotations

import os
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST = 300e-6
"""How many seconds it looks if the last answer came within that time."""

_LEAST = 20e-6
"""How many seconds it looks if answers have taken longer for some time."""


class Patience:
    """How long to look, learnt from how long the last waits were."""

    __slots__ = ("_pause", "_seconds")

    def __init__(self) -> None:
        # On a single processor the server makes no progress meanwhile. Without `sched_yield` this
        # thread could keep the server from the only processor that is free.
        self._pause: Callable[[], None] | None = getattr(os, "sched_yield", None)
        self._seconds = _MOST if self._pause and _processors() > 1 else 0.0

    def wait(
        self, poll: Callable[[Any], Any], milliseconds: float | None, *, is_alone: bool
    ) -> None:
        """Waits until `poll`, which takes a time limit, returns something.

        `milliseconds` is the limit of one call. Unless the thread `is_alone`, others wait too, and
        the processor is for what they wait for.
        """
        pause = self._pause
        if pause is None or not (is_alone and self._seconds):
            while not poll(milliseconds):
                pass
            return
        start = perf_counter()
        end = start + self._seconds
        while not poll(0):
            if perf_counter() >= end:
                while not poll(milliseconds):
                    pass
                break
            pause()
        if perf_counter() - start <= _MOST:
            self._seconds = _MOST
        else:
            self._seconds = max(self._seconds / 2, _LEAST)


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
