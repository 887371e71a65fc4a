"""Threads for tools that run beside the one that waits for the guest."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable

Work = Callable[[], None]

_IDLE_SECONDS = 1.0


class Pool:
    """Runs each piece of work at once, in a thread that is idle or a new one.

    The threads are daemons: one that never returns does not keep the program from ending.
    """

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Forgets all threads, which belong to the parent of this process."""
        # A finalizer of the program may run while it is held, and run code.
        self._lock = threading.RLock()
        self._idle = 0
        self._works: queue.SimpleQueue[Work] = queue.SimpleQueue()

    def start(self, work: Work) -> None:
        """Starts a piece of work, which must not raise."""
        with self._lock:
            if self._idle:
                self._idle -= 1
                self._works.put(work)
                return
        threading.Thread(target=self._serve, args=(work,), name="isolet", daemon=True).start()

    def _serve(self, work: Work) -> None:
        while True:
            work()
            del work
            with self._lock:
                self._idle += 1
            try:
                work = self._works.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if self._works.empty():
                        self._idle -= 1
                        return
                # It was given to this thread in the last moment.
                work = self._works.get()


pool = Pool()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.renew)
