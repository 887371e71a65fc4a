"""Threads as stacks of their own: one runs until it waits, and then another one does.

CPython is built without threads here. What it has in `_thread` is replaced: a thread is a call that
can be suspended, and a lock suspends whoever wants it until its holder passes it on. Everything
above that (`threading`, `queue`, `concurrent.futures`, asyncio's executors) is CPython's own.
"""

import _queue
import _thread
import asyncio
import collections
import functools
import importlib
import logging
import os
import queue
import sys
import threading
import types

import _isolet_tools as tools
import _isolet_waits as waits
from _isolet_locks import MAIN, NO_PLACE, STEP, Lock, RLock, ident_of, shown_as, suspend, wake
from _isolet_thread_data import Local, SimpleQueue, forget
from pyodide.ffi import can_run_sync, create_once_callable

MAX_THREADS = 1000  # at a time; each has a stack
PID = os.getpid()

bridge = None
running = {}  # the handles of the threads that have not ended, by number
last_thread = 0
Unraisable = None
interrupt_running = _thread.interrupt_main
show_exception = _thread._excepthook


def attach(host_bridge):
    """Connects a restored interpreter to its host."""
    global bridge
    bridge = host_bridge


def install():
    """Puts all this in the places of CPython's own.

    Of these hardly anything has been used by then.
    """
    global Unraisable
    Unraisable = unraisable_type()
    for name, value in REPLACED.items():
        setattr(_thread, name, value)
    _queue.SimpleQueue = SimpleQueue
    importlib.reload(threading)
    importlib.reload(queue)
    functools.RLock = RLock
    logging._lock = RLock()


@shown_as("_ThreadHandle")
class ThreadHandle:
    """What is known about a thread, and where others wait for its end."""

    def __init__(self):
        self.ident = 0
        self.number = None
        self.is_daemon = True
        self.done = False
        self.waiters = collections.deque()

    def join(self, timeout=None):
        if self.number is None:
            raise RuntimeError("thread not started")
        if self.done:
            return
        if self.number == waits.thread:
            raise RuntimeError("Cannot join current thread")
        suspend(self.waiters, -1 if timeout is None else max(timeout, 0))

    def is_done(self):
        return self.done

    def _set_done(self):
        if self.number is None:
            raise RuntimeError("thread not started")
        self.done = True
        while wake(self.waiters):
            pass

    def __repr__(self):
        return f"<_ThreadHandle object: ident={self.ident}>"


def make_thread_handle(ident):
    handle = ThreadHandle()
    handle.ident, handle.number = ident, (ident - MAIN) // STEP
    return handle


def start_joinable_thread(function, handle=None, daemon=True):
    """Start a new thread that calls the function without arguments; returns its handle."""
    if not callable(function):
        raise TypeError("thread function must be callable")
    if handle is None:
        handle = ThreadHandle()
    elif not isinstance(handle, ThreadHandle):
        raise TypeError("'handle' must be a _ThreadHandle")
    elif handle.number is not None:
        raise RuntimeError("thread already started")
    launch(handle, daemon, function, (), {})
    return handle


def start_new_thread(function, args, kwargs=None):
    """Start a new thread that calls the function with these arguments; returns its identifier."""
    if not callable(function):
        raise TypeError("first arg must be callable")
    if not isinstance(args, tuple):
        raise TypeError("2nd arg must be a tuple")
    if kwargs is not None and not isinstance(kwargs, dict):
        raise TypeError("optional 3rd arg must be a dictionary")
    handle = ThreadHandle()
    launch(handle, True, function, args, kwargs or {})
    return handle.ident


def launch(handle, is_daemon, function, args, kwargs):
    """Runs a function as a thread until it waits for the first time, or to its end."""
    global last_thread
    if not can_run_sync():
        raise RuntimeError(f"can't start new thread: {NO_PLACE}")
    if len(running) >= MAX_THREADS:
        count = len(running)
        raise RuntimeError(f"can't start new thread: {count} run, the limit is {MAX_THREADS}")
    last_thread = number = last_thread + 1
    handle.ident, handle.number, handle.is_daemon = ident_of(number), number, is_daemon
    running[number] = handle
    starter = collections.deque()

    def run():  # interrupts are held back here, as in every entry from JavaScript
        waits.thread = number
        asyncio._set_running_loop(None)
        try:
            bridge.release(number)
            function(*args, **kwargs)
        except SystemExit:
            pass
        except BaseException as error:
            report(error, f"Exception ignored in thread started by {function!r}")
        finally:
            del running[number]
            forget(number)
            waits.forget(number)
            handle._set_done()
            wake(starter)
            waits.thread = 0

    waits.first_waits[number] = functools.partial(wake, starter)
    bridge.spawn(create_once_callable(run, _may_syncify=True))
    suspend(starter, -1)


def report(error, message):
    """Says what nobody is there to catch, as CPython does."""
    sys.unraisablehook(Unraisable((type(error), error, error.__traceback__, message, None)))


def unraisable_type():
    """The type of what `sys.unraisablehook` is called with, which has no name to be had by."""

    class Failing:
        def __del__(self):
            raise ValueError

    seen = []
    hook, sys.unraisablehook = sys.unraisablehook, lambda args: seen.append(type(args))
    Failing()
    sys.unraisablehook = hook
    return seen[0]


def get_ident():
    """Return a non-zero integer that identifies the current thread amongst others that exist."""
    return MAIN + waits.thread * STEP


def get_native_id():
    """Return a non-negative integer identifying the thread as reported by the OS (kernel)."""
    return PID + waits.thread


def interrupt_main(signum=2):
    """Simulate the arrival of a signal, which the main thread handles."""
    if waits.thread and signum == 2:
        bridge.interrupt()
    else:
        interrupt_running(signum)


def count():
    """Return the number of threads besides the main one."""
    return len(running)


def shutdown():
    """Wait for the end of the threads that are no daemons."""
    while handles := [handle for handle in running.values() if not handle.is_daemon]:
        handles[0].join()


def finish():
    """Ends the threads of a program as python does: those that are no daemons come to their ends.

    The next program of the session may start some again.
    """
    try:
        threading._shutdown()
    except Exception as error:
        report(error, "Exception ignored on threading shutdown")
    threading._SHUTTING_DOWN = False
    threading._main_thread._os_thread_handle.done = False
    pools = sys.modules.get("concurrent.futures.thread")
    if pools is not None:
        pools._shutdown = False


def excepthook(args, /):
    """Handle uncaught Thread.run() exception."""
    # These two end the run that the main thread is in.
    if not issubclass(args.exc_type, (tools.Submission, KeyboardInterrupt)):
        show_exception(args)


def patch_pool(module):
    """Thread pools of multiprocessing would be told of changes by a pipe between processes."""

    class Notifier(SimpleQueue):
        __module__ = "isolet"
        _reader = None

    context = types.SimpleNamespace(SimpleQueue=Notifier)

    def __init__(self, processes=None, initializer=None, initargs=()):
        module.Pool.__init__(self, processes, initializer, initargs, context=context)

    def wait_for_updates(sentinels, change_notifier, timeout=None):
        change_notifier.get()
        while not change_notifier.empty():
            change_notifier.get()

    module.ThreadPool.__init__ = __init__
    module.Pool._wait_for_updates = staticmethod(wait_for_updates)


REPLACED = {
    "lock": Lock,
    "LockType": Lock,
    "allocate_lock": Lock,
    "allocate": Lock,
    "RLock": RLock,
    "_local": Local,
    "_ThreadHandle": ThreadHandle,
    "_make_thread_handle": make_thread_handle,
    "start_joinable_thread": start_joinable_thread,
    "start_new_thread": start_new_thread,
    "start_new": start_new_thread,
    "get_ident": get_ident,
    "get_native_id": get_native_id,
    "interrupt_main": interrupt_main,
    "_count": count,
    "_excepthook": excepthook,
    "_shutdown": shutdown,
}
