"""The event loop for coroutine tools of programs without one of their own."""

from __future__ import annotations

import asyncio
import os
import threading

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def loop() -> asyncio.AbstractEventLoop:
    """Returns the loop, which runs in a thread of its own until the program ends.

    It is always the same one, because clients of networks belong to the loop of their first use.
    """
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="isolet-loop", daemon=True).start()
        return _loop


def _renew() -> None:
    global _lock, _loop
    _lock, _loop = threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
