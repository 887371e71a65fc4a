"""Locks that suspend whoever waits for them, in the places of CPython's, which would wait for ever.

A lock that is waited for is never free: its holder passes it on to the first in the queue.
"""

import _thread
import collections

import _isolet_waits as waits
from pyodide.ffi import can_run_sync

STEP = 64  # between the identifiers of two threads
WOKEN, STALLED = 1, 2  # how a wait ended; 0 is by its timeout

NO_PLACE = "a function that JavaScript called cannot wait"
DEADLOCK = (
    "deadlock: this waits for another thread, and no thread, timer or host call is left to end "
    "the wait"
)

MAIN = _thread.get_ident()
TIMEOUT_MAX = _thread.TIMEOUT_MAX

bridge = None
last_wait = 0


def attach(host_bridge):
    """Connects a restored interpreter to its host."""
    global bridge
    bridge = host_bridge


def shown_as(name, module="_thread"):
    """Gives a class the name that CPython's has."""

    def rename(cls):
        cls.__module__, cls.__name__, cls.__qualname__ = module, name, name
        return cls

    return rename


def suspend(waiters, timeout, pass_on=None):
    """Waits in a queue to be woken; false if that did not happen within the timeout, -1 being none.

    `pass_on` is called if this was woken and is interrupted all the same.
    """
    global last_wait
    if not can_run_sync():
        raise RuntimeError(f"deadlock: this waits for another thread, but {NO_PLACE}")
    last_wait = number = last_wait + 1
    waiters.append(number)
    try:
        milliseconds = timeout * 1000 if 0 <= timeout * 1000 <= waits.MAX_TIMEOUT else -1
        promise = bridge.park(number, milliseconds, waits.thread)
        ended = waits.block(promise, True)
    except BaseException:
        if number in waiters:
            waiters.remove(number)
            bridge.unpark(number)
        elif pass_on is not None:
            pass_on()
        raise
    if ended == WOKEN:
        return True
    waiters.remove(number)
    if ended == STALLED:
        raise RuntimeError(DEADLOCK)
    return False


def wake(waiters):
    """Wakes the first in a queue; false if nobody waits in it."""
    while waiters:
        if bridge.unpark(waiters.popleft()):
            return True
    return False


def check_timeout(blocking, timeout):
    if not blocking:
        raise ValueError("can't specify a timeout for a non-blocking call")
    if timeout < 0:
        raise ValueError("timeout value must be a non-negative number")
    if timeout > TIMEOUT_MAX:
        raise OverflowError("timestamp too large to convert to C PyTime_t")


@shown_as("lock")
class Lock:
    """A lock object is a synchronization primitive; see threading.Lock."""

    __slots__ = ("__weakref__", "_held", "_waiters")

    def __init__(self):
        self._held = False
        self._waiters = None

    def acquire(self, blocking=True, timeout=-1):
        """Lock the lock; with blocking, wait until it is free, up to the timeout in seconds."""
        if timeout != -1:
            check_timeout(blocking, timeout)
        if not self._held:
            self._held = True
            return True
        if not blocking or timeout == 0:
            return False
        if self._waiters is None:
            self._waiters = collections.deque()
        # Whoever is woken holds it.
        return suspend(self._waiters, timeout, self.release)

    def release(self):
        """Release the lock, allowing another thread that waits for it to acquire it."""
        if not self._held:
            raise RuntimeError("release unlocked lock")
        if not self._waiters or not wake(self._waiters):
            self._held = False

    def locked(self):
        """Return whether the lock is in the locked state."""
        return self._held

    def __exit__(self, *error):
        self.release()

    def __repr__(self):
        state = "locked" if self._held else "unlocked"
        return f"<{state} _thread.lock object at {id(self):#x}>"

    def __reduce__(self):
        raise TypeError("cannot pickle '_thread.lock' object")

    def __init_subclass__(cls):
        raise TypeError("type '_thread.lock' is not an acceptable base type")

    _at_fork_reinit = __init__
    __enter__ = acquire_lock = acquire
    release_lock = release
    locked_lock = locked


@shown_as("RLock")
class RLock:
    """A lock that the thread which holds it can take again; see threading.RLock."""

    def __init__(self):
        self._lock = Lock()
        self._owner = None
        self._count = 0

    def acquire(self, blocking=True, timeout=-1):
        """Lock the lock; with blocking, wait until it is free, up to the timeout in seconds."""
        if self._owner == waits.thread:
            if timeout != -1:
                check_timeout(blocking, timeout)
            self._count += 1
            return True
        if not self._lock.acquire(blocking, timeout):
            return False
        self._owner, self._count = waits.thread, 1
        return True

    def release(self):
        """Release the lock; it is free when that was done as often as acquire()."""
        if self._owner != waits.thread:
            raise RuntimeError("cannot release un-acquired lock")
        self._count -= 1
        if self._count == 0:
            self._owner = None
            self._lock.release()

    def locked(self):
        """Return whether the lock is in the locked state."""
        return self._lock.locked()

    def __exit__(self, *error):
        self.release()

    def _is_owned(self):
        return self._owner == waits.thread

    def _recursion_count(self):
        return self._count if self._owner == waits.thread else 0

    def _release_save(self):
        if self._count == 0:
            raise RuntimeError("cannot release un-acquired lock")
        state, self._owner, self._count = (self._count, self._owner), None, 0
        self._lock.release()
        return state

    def _acquire_restore(self, state):
        self._lock.acquire()
        self._count, self._owner = state

    def __repr__(self):
        state = "locked" if self._count else "unlocked"
        owner = 0 if self._owner is None else ident_of(self._owner)
        kind = type(self)
        return (
            f"<{state} {kind.__module__}.{kind.__qualname__} object owner={owner} "
            f"count={self._count} at {id(self):#x}>"
        )

    def __reduce__(self):
        raise TypeError(f"cannot pickle '{type(self).__module__}.{type(self).__qualname__}' object")

    _at_fork_reinit = __init__
    __enter__ = acquire


def ident_of(number):
    """What `threading` calls the thread of a number."""
    return MAIN + number * STEP
