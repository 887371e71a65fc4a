"""Waits: asyncio's blocking calls and `time.sleep`, by suspending the whole stack."""

import asyncio
import collections.abc
import functools
import inspect
import math
import signal
import sys
import time
import types
import weakref
from concurrent import futures

from _pyodide import _future_helper
from pyodide import webloop
from pyodide.ffi import can_run_sync, create_once_callable, run_sync

LOST_AFTER = 0.1  # seconds after an interrupt
MAX_TIMEOUT = 2**31 - 1  # milliseconds, what a JavaScript timer takes

INTERRUPTED = -2  # what a blocked thread gets instead of an answer

ENDED_EARLY = "a wait has ended before what it waits for, as JavaScript's promises were changed"

bridge = None
deliver_alarm = None  # calls the handler of SIGALRM
alarm_error = None  # what that has raised, for the task that a cell waits for
cells = None  # the loop that runs in every cell
thread = 0  # the number of the thread that runs; 0 is the main one
default_loops = {}  # by the number of the thread
hit = weakref.WeakSet()  # tasks that the cell's last interrupt was raised in
scheduled = {}  # callbacks of loops that are due later or soon: each with its handle, by number
last_scheduled = 0
first_waits = {}  # what to call when a new thread waits for the first time, by its number
# Pyodide's own callbacks of futures: a type of C without a module, and a method of every loop.
DONE = next(kind for kind in object.__subclasses__() if kind.__name__ == "FutureDoneCallback")
METHOD = types.MethodType
# What is never awaitable.
PLAIN = frozenset([type(None), bool, int, float, str, bytes, list, tuple, dict, set])


def install():
    """Puts the calls in place of Pyodide's."""
    global cells
    asyncio.set_event_loop_policy(LoopPolicy())
    cells = default_loop()
    asyncio.run = asyncio_run
    time.sleep = sleep


def attach(host_bridge):
    """Connects a restored interpreter to its host."""
    global bridge
    bridge = host_bridge
    bridge.spare(id(_future_helper.set_result))


def wait_for(awaitable, loop=None, interrupt=asyncio.Task.cancel, context=None):
    """Blocks until `awaitable` is done, by suspending the whole stack.

    The result is taken from the task itself, not through the event loop and JavaScript: an
    exception is the same object with the same traceback, and SystemExit is nothing special. An
    interrupt is passed on to the task, which may take its time to end; a second one does not wait
    for that.
    """
    outer = asyncio._get_running_loop()
    loop = loop or outer or default_loop()
    if context is not None and asyncio.iscoroutine(awaitable):
        task = loop.create_task(awaitable, context=context)
    else:
        task = asyncio.ensure_future(awaitable, loop=loop)
    waiter = loop.create_future()
    task.add_done_callback(lambda _: waiter.done() or waiter.set_result(None))
    interrupted = None
    try:
        while not waiter.done():
            try:
                block(waiter)
                if not waiter.done():
                    raise RuntimeError(ENDED_EARLY)
            except KeyboardInterrupt as error:
                if interrupted is not None:
                    task.cancel()
                    raise
                interrupted = error
                if interrupt(task) is False:
                    break
                loop.call_later(LOST_AFTER, give_up_if_lost, task, waiter)
            except BaseException as error:
                if error is not alarm_error or interrupt is not throw_interrupt:
                    raise
                if throw_interrupt(task, error) is False:
                    raise
    finally:
        asyncio._set_running_loop(outer)
    if interrupted is not None and (task.cancelled() or not task.done()):
        raise interrupted
    return task.result()


def give_up_if_lost(task, waiter):
    """Ends the wait for a task that the interrupt hit while it was rescheduling itself.

    Such a task waits for nothing and is never called again. One that ends in its own time is
    waiting for something by now.
    """
    if not waiter.done() and not task.done() and task._fut_waiter is None:
        waiter.set_result(None)


def throw_interrupt(task, error=None):
    """Raises the error, or KeyboardInterrupt, at the `await` or in the call where `task` is
    suspended; False if there is none.

    It may be a future instead, which is what is awaited then. What waits for another task is
    suspended where that one is, and what gathers several where each of them is. Tasks that wait for
    each other are suspended nowhere.
    """
    # Only here: in a call that blocks a task, the same interrupt ends a wait of the task's own.
    hit.clear()
    asked, passed, reached = [task], set(), False
    while asked:
        task = asked.pop()
        if id(task) in passed:
            continue
        passed.add(id(task))
        awaited = task._fut_waiter if isinstance(task, asyncio.Task) else task
        if isinstance(awaited, asyncio.Task) and not awaited.done():
            asked.append(awaited)
            continue
        if isinstance(awaited, asyncio.tasks._GatheringFuture) and not awaited.done():
            children = [child for child in awaited._children if isinstance(child, asyncio.Task)]
            waiting = [child for child in reversed(children) if not child.done()]
            asked += waiting
            if len(waiting) < len(awaited._children):
                # It may be about to go on, with what a child has raised, or waits for no task.
                hit.add(task)
                awaited.set_exception(error or KeyboardInterrupt())
                reached = True
            continue
        reached = True
        if awaited is None:
            task.cancel()
            # It may be in a call that blocks, which is the outermost wait now that the cell's has
            # ended.
            hit.add(task)
            bridge.interrupt()
        elif awaited.done():
            task.cancel()
        else:
            hit.add(task)
            awaited.set_exception(error or KeyboardInterrupt())
    return reached


def is_internal(callback):
    """Whether a callback is Pyodide's own. An interrupt in it would be lost: it would take it for
    the result of a future that nobody may wait for, or lose count of the tasks.
    """
    kind = type(callback)
    return kind is DONE or kind is METHOD and callback.__func__ is Loop._decrement_in_progress


def was_hit(callback):
    """Whether this is the step of a task that the cell's interrupt was raised in: the cell has got
    it already.
    """
    try:
        task = callback.__self__
        if task not in hit:
            return False
        hit.discard(task)
        return True
    except BaseException:  # guest code that runs when a callback is looked at
        return False


def block(promise, for_thread=False):
    """Suspends until `promise` is done; `for_thread` says that only another thread can end the
    wait.

    An interrupt on the way into the wait would end up in Pyodide's conversions, which take it for
    an error of theirs; so it is held back until the wait has begun, and ends that instead.
    """
    global thread
    waiting = thread
    bridge.hold(waiting, for_thread)
    try:
        if waiting in first_waits:
            first_waits.pop(waiting)()
        while True:
            thread = 0
            try:
                return run_sync(promise)
            except KeyboardInterrupt:
                alarmed = bridge.take_alarm() if waiting == 0 else 0
                if not alarmed:
                    raise
            if alarmed == 1:
                handle_alarm()  # and then the wait goes on
            bridge.hold(waiting, for_thread)
    finally:
        thread = waiting
        bridge.release(waiting)


def handle_alarm():
    """Has the handler of SIGALRM called, which may raise an exception."""
    global alarm_error
    bridge.release(0)
    try:
        deliver_alarm(int(signal.SIGALRM), sys._getframe(2))
    except BaseException as error:
        alarm_error = error
        raise


def answered(call, timeout=-1):
    """Blocks until a call is answered: the length of the answer, or -1 after `timeout` milliseconds
    if given.

    With functions of JavaScript on the stack that cannot be suspended; then its thread blocks.
    """
    if can_run_sync():
        return block(bridge.answered(call, timeout))
    while (size := bridge.answered_here(call, timeout)) == INTERRUPTED:
        pass  # the interrupt is raised here
    return size


def forget(number):
    """Drops what there is for a thread that has ended."""
    first_waits.pop(number, None)
    default_loops.pop(number, None)


@functools.wraps(webloop._orig_sleep)
def sleep(seconds):
    if not hasattr(type(seconds), "__float__") and not hasattr(type(seconds), "__index__"):
        kind = type(seconds).__name__
        raise TypeError(f"'{kind}' object cannot be interpreted as an integer or float")
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    if can_run_sync():
        block(bridge.sleep(seconds * 1000))
    else:
        webloop._orig_sleep(seconds)


def schedule(run, delay):
    """Has JavaScript call back after so many seconds."""
    delay = min(max(delay, 0) * 1000, MAX_TIMEOUT)
    bridge.schedule(create_once_callable(run, _may_syncify=True), delay)


def timers():
    """How many timers JavaScript has for Python."""
    return sum(isinstance(handle, asyncio.TimerHandle) for _, handle in scheduled.values())


def resume():
    """Has JavaScript call back for all that was scheduled in another interpreter."""
    now = time.monotonic()
    for run, handle in list(scheduled.values()):
        schedule(run, handle.when() - now if isinstance(handle, asyncio.TimerHandle) else 0)


def default_loop():
    return asyncio.get_event_loop_policy().get_event_loop()


def enter_cell():
    """Has the loop run that all cells share, so that a task of one is not another loop's in the
    next.
    """
    asyncio._set_running_loop(cells)
    cells._is_closed = False


def leave_cell():
    """Gives what waits to be run a turn of the event loop: tasks that this cell has begun, or one
    before it.
    """
    if cells._in_progress > 0:
        wait_for(asyncio.sleep(0), cells)


def is_awaitable(value):
    try:
        kind = type(value)
        return kind not in PLAIN and issubclass(kind, collections.abc.Awaitable)
    except KeyboardInterrupt:
        raise
    except BaseException:  # guest code that runs when a value is looked at
        return False


class Task(webloop.PyodideTask):
    """Pyodide's task, which may also be started at once: then it runs before it is whole."""

    _num_done_callbacks = 0


class Loop(webloop.WebLoop):
    """Pyodide's event loop, with the blocking calls that JSPI makes possible."""

    slow_callback_duration = 0.1
    # A task's exception is reported by the task, when it is certain that nobody asks for it.
    call_exception_handler = asyncio.BaseEventLoop.call_exception_handler
    default_exception_handler = asyncio.BaseEventLoop.default_exception_handler

    def __init__(self):
        outer = asyncio._get_running_loop()
        super().__init__()
        # A loop runs while it is waited for, not from its making on.
        asyncio._set_running_loop(outer)
        self._stopper = None
        self._thread = thread
        self._default_executor = None
        self._is_closed = False

    def create_task(self, coro, **options):
        if self._task_factory is None:
            task = Task(coro, loop=self, **options)
        else:
            task = self._task_factory(self, coro, **options)
        self._in_progress += 1
        task.add_done_callback(self._decrement_in_progress)
        try:
            return task
        finally:
            del task  # it is in the traceback of its own exception

    def _decrement_in_progress(self, future=None):
        self._in_progress -= 1

    def call_soon(self, callback, *args, context=None):
        return self._schedule(asyncio.Handle(callback, args, self, context), 0)

    def call_later(self, delay, callback, *args, context=None):
        handle = asyncio.TimerHandle(self.time() + delay, callback, args, self, context)
        return self._schedule(handle, delay)

    def call_at(self, when, callback, *args, context=None):
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        return self._schedule(handle, when - self.time())

    def _schedule(self, handle, delay):
        """As Pyodide's, but no interrupt can fall between the event loop and the callback.

        One that did would lose the callback, and a task that it should have woken sleeps forever.
        """
        global last_scheduled

        def run():  # interrupts are held back here, as in every entry from JavaScript
            global thread
            _, handle = scheduled.pop(number)
            thread = self._thread
            self._install_running_loop()
            self._install_asyncgen_hooks()
            if handle.cancelled():
                bridge.release(thread)
                return
            run_in_context, callback, args = handle._context.run, handle._callback, handle._args
            try:
                if not is_internal(callback):
                    bridge.release(thread)
                run_in_context(callback, *args)
                # From here on none may come: one that has is raised by this call, and not in what
                # is called next from JavaScript.
                bridge.hold(thread)
            except SystemExit:
                pass  # a task keeps it for whoever waits
            except KeyboardInterrupt:
                if not was_hit(callback):
                    bridge.interrupt()
            except BaseException as error:
                message = f"Exception in callback {handle!r}"
                self.call_exception_handler(
                    {"message": message, "exception": error, "handle": handle}
                )
            finally:
                # An exception that a task keeps has this frame, which would keep the task.
                handle = callback = args = None

        if delay != math.inf:
            number = last_scheduled = last_scheduled + 1
            scheduled[number] = run, handle
            schedule(run, delay)
        return handle

    def run_in_executor(self, executor, func, *args):
        if executor is None:
            if self._default_executor is None:
                self._default_executor = futures.ThreadPoolExecutor(thread_name_prefix="asyncio")
            executor = self._default_executor
        return asyncio.wrap_future(executor.submit(func, *args), loop=self)

    def set_default_executor(self, executor):
        if not isinstance(executor, futures.ThreadPoolExecutor):
            raise TypeError("executor must be ThreadPoolExecutor instance")
        self._default_executor = executor

    async def shutdown_default_executor(self, timeout=None):
        executor, self._default_executor = self._default_executor, None
        if executor is not None:
            executor.shutdown(wait=True)

    def run_until_complete(self, future):
        self._check_closed()
        self._thread = thread
        return wait_for(future, self)

    def run_forever(self):
        self._check_closed()
        self._thread = thread
        self._stopper = self.create_future()
        wait_for(self._stopper, self)

    def close(self):
        """Refuses to run from here on; the loop of the cells is opened again by the next one."""
        if asyncio._get_running_loop() is self and asyncio.current_task(self) is not None:
            raise RuntimeError("Cannot close a running event loop")
        self._is_closed = True

    def is_closed(self):
        return self._is_closed

    def _check_closed(self):
        if self._is_closed:
            raise RuntimeError("Event loop is closed")

    def stop(self):
        if self._stopper is not None and not self._stopper.done():
            self._stopper.set_result(None)


def refuse(reason, *names):
    """Puts in place of methods of Pyodide's that name a browser what says why they are missing."""

    def method(name):
        def refused(self, *args, **options):
            raise NotImplementedError(f"{name}() is not available in isolet: {reason}")

        async def refused_later(self, *args, **options):
            refused(self)

        is_async = inspect.iscoroutinefunction(getattr(webloop.WebLoop, name))
        return refused_later if is_async else refused

    for name in names:
        setattr(Loop, name, method(name))


refuse(
    "sockets carry HTTP requests only, for which httpx, requests and urllib.request work",
    *("create_connection", "create_unix_connection", "create_datagram_endpoint", "start_tls"),
    *("sock_connect", "sock_recv", "sock_recvfrom", "sock_recvfrom_into", "sock_sendall"),
    *("sock_sendto", "sock_sendfile", "sendfile"),
)
refuse(
    "a guest cannot be a server",
    *("create_server", "create_unix_server", "connect_accepted_socket", "sock_accept"),
)
refuse("a guest has no signals", "add_signal_handler", "remove_signal_handler")
refuse(
    "only threads and tasks can wait for files and pipes",
    *("add_reader", "add_writer", "remove_reader", "remove_writer"),
    *("connect_read_pipe", "connect_write_pipe"),
)


class LoopPolicy(webloop.WebLoopPolicy):
    """Keeps a loop for each thread."""

    def __init__(self):
        pass

    @property
    def _default_loop(self):
        return default_loops.get(thread)

    @_default_loop.setter
    def _default_loop(self, loop):
        default_loops[thread] = loop

    def new_event_loop(self):
        self._default_loop = Loop()
        return self._default_loop


@functools.wraps(webloop._orig_run)
def asyncio_run(main, *, debug=None, loop_factory=None):
    """`asyncio.run`; inside a task it waits there, where CPython would refuse."""
    running = asyncio._get_running_loop()
    if running is not None and asyncio.current_task(running) is not None:
        return wait_for(main, running)
    asyncio._set_running_loop(None)
    try:
        return webloop._orig_run(main, debug=debug, loop_factory=loop_factory)
    finally:
        asyncio._set_running_loop(running)
