"""What passes between threads (`_queue.SimpleQueue`), and what each has of its own
(`_thread._local`).
"""

import _queue
import collections
import types
import weakref
from time import monotonic

import _isolet_locks as locks
import _isolet_waits as waits

owned = {}  # the locals that a thread has values in, by its number


@locks.shown_as("SimpleQueue", "_queue")
class SimpleQueue:
    """Simple, unbounded, reentrant FIFO queue."""

    __slots__ = ("__weakref__", "_items", "_waiters")

    def __init__(self):
        self._items = collections.deque()
        self._waiters = collections.deque()

    def put(self, item, block=True, timeout=None):
        """Put the item on the queue; this never blocks."""
        self._items.append(item)
        if self._waiters:
            locks.wake(self._waiters)

    def get(self, block=True, timeout=None):
        """Remove and return an item; with block, wait for one, up to the timeout in seconds.

        Raises Empty if there is none.
        """
        if timeout is not None and timeout < 0:
            raise ValueError("'timeout' must be a non-negative number")
        if not self._items and block:
            self._wait(timeout)
        if not self._items:
            raise _queue.Empty
        return self._items.popleft()

    def _wait(self, timeout):
        end = None if timeout is None else monotonic() + timeout
        while not self._items:
            left = -1 if end is None else max(end - monotonic(), 0)
            if not locks.suspend(self._waiters, left, self._pass_on):
                return

    def _pass_on(self):
        """Wakes another one for an item that this one was woken for."""
        if self._items:
            locks.wake(self._waiters)

    def put_nowait(self, item):
        """Put the item on the queue, as put() does."""
        self.put(item)

    def get_nowait(self):
        """Remove and return an item without waiting for one; raises Empty if there is none."""
        return self.get(False)

    def empty(self):
        """Return whether the queue is empty."""
        return not self._items

    def qsize(self):
        """Return the size of the queue."""
        return len(self._items)

    def __sizeof__(self):
        return object.__sizeof__(self) + self._items.__sizeof__()

    __class_getitem__ = classmethod(types.GenericAlias)


class Values:
    """What the threads have in one `local`."""

    __slots__ = ("__weakref__", "args", "kwargs", "owner", "dicts", "thread")

    def __init__(self, owner, args, kwargs):
        self.args, self.kwargs = args, kwargs
        self.owner = weakref.ref(owner)
        self.dicts = {}
        self.thread = None  # whose values the owner's __dict__ is

    def show(self, owner, number):
        """Puts the values of a thread in place; a new thread has none. Whether it is new."""
        is_new = number not in self.dicts
        if is_new:
            owned.setdefault(number, weakref.WeakSet()).add(self)
        set_attribute(owner, "__dict__", self.dicts.setdefault(number, {}))
        self.thread = number
        return is_new


get_attribute = object.__getattribute__
set_attribute = object.__setattr__


@locks.shown_as("_local")
class Local:
    """Thread-local data: each thread has attributes of its own."""

    __slots__ = ("__dict__", "__weakref__", "_local__impl")

    def __new__(cls, /, *args, **kwargs):
        if (args or kwargs) and cls.__init__ is object.__init__:
            raise TypeError("Initialization arguments are not supported")
        self = object.__new__(cls)
        values = Values(self, args, kwargs)
        set_attribute(self, "_local__impl", values)
        values.show(self, waits.thread)  # whose __init__ is called next
        return self

    def __getattribute__(self, name):
        if get_attribute(self, "_local__impl").thread != waits.thread:
            switch(self)
        return get_attribute(self, name)

    def __setattr__(self, name, value):
        refuse_dict(self, name)
        set_attribute(self, name, value)

    def __delattr__(self, name):
        refuse_dict(self, name)
        object.__delattr__(self, name)


def refuse_dict(local, name):
    if get_attribute(local, "_local__impl").thread != waits.thread:
        switch(local)
    if name == "__dict__":
        kind = type(local).__name__
        raise AttributeError(f"{kind!r} object attribute '__dict__' is read-only")


def switch(local):
    """Gives a `local` the values of the running thread."""
    values = get_attribute(local, "_local__impl")
    if values.show(local, waits.thread):
        type(local).__init__(local, *values.args, **values.kwargs)


def forget(number):
    """Drops what a thread that has ended had of its own."""
    for values in owned.pop(number, ()):
        values.dicts.pop(number, None)
        owner = values.owner()
        if owner is not None and values.thread == number:
            values.thread = None
            set_attribute(owner, "__dict__", {})
