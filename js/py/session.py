"""The guest half of a session: runs cells and reports what became of them.

The host relies on nothing said here: limits, deadlines and permissions are enforced outside. A guest
that tampers with this module only spoils its own results.
"""

import ast
import asyncio
import atexit
import functools
import json
import linecache
import marshal
import os
import random
import sys
import time
import traceback
import types
from pyodide import webloop
from pyodide.ffi import can_run_sync, run_sync

GLUE = "<isolet>"
PYODIDE = ("/lib/python314.zip/pyodide/", "/lib/python314.zip/_pyodide/")
MARSHAL_VERSION = 2  # the last one without back references: a plain tree
BYTES_HEADER = bytes.__basicsize__ - 1  # where the contents of a bytes object start
TOP_LEVEL_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
COROUTINE = 0x80  # inspect.CO_COROUTINE
FUTURE_FLAGS = 0x1FF0000  # every __future__ flag of this CPython
VALUE = "<value>"  # holds the last expression's value for a moment; no guest code can spell it
SCALARS = (type(None), bool, int, float, str, bytes)

bridge = None
future_flags = 0
stdin_used = False


def prepare():
    """Runs once, when the memory image is made: imports what most programs need."""
    import collections, dataclasses, datetime, enum, io, itertools  # noqa: E401, F401
    import math, operator, pathlib, re, string, textwrap, typing  # noqa: E401, F401

    asyncio.set_event_loop_policy(LoopPolicy())
    asyncio.run = asyncio_run
    time.sleep = sleep


def attach(host_bridge):
    """Connects a restored interpreter to its host."""
    global bridge
    bridge = host_bridge
    webloop.scheduleCallback = bridge.schedule


def handle(length):
    """Takes one command frame from the host, carries it out and gives the reply."""
    # Freshly made and unshared, so that the host may still write into it.
    buffer = bytes(length)
    bridge.take(id(buffer) + BYTES_HEADER, length)
    command = marshal.loads(buffer)
    del buffer
    asyncio._set_running_loop(None)
    try:
        reply = COMMANDS[command["command"]](command)
        data = dump(reply, command.get("max_value"))
    except BaseException as error:  # an interrupt, or guest code that broke what reports use
        reply = {"status": "raised", "exception": describe_exception(error)}
        data = dump(reply, None)
    bridge.give(id(data) + BYTES_HEADER, len(data))


def dump(reply, max_value):
    data = marshal.dumps(reply, MARSHAL_VERSION)
    if max_value is not None and reply.get("value") is not None and len(data) > max_value:
        size = len(marshal.dumps(reply.pop("value"), MARSHAL_VERSION))
        if size > max_value:
            reply["value_error"] = (
                f"a value of {size} bytes cannot cross to the host, the limit is {max_value} bytes"
            )
            data = marshal.dumps(reply, MARSHAL_VERSION)
    return data


def start(command):
    """Makes a restored interpreter this session's own: entropy, environment, streams."""
    random.seed()
    os.environ.clear()
    os.environ.update(command["env"])
    # Unbuffered, as `python -u`: what was written is kept even if the run is killed right after.
    for name, fd, errors in (("stdout", 1, "strict"), ("stderr", 2, "backslashreplace")):
        raw = open(fd, "wb", buffering=0, closefd=False)
        stream = open_text(raw, errors)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    return {}


def reopen_stdin(used):
    """Starts a run's own standard input: what the last run left in the buffer is not for it."""
    global stdin_used
    stdin_used = used
    stream = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)
    if sys.stdin is sys.__stdin__:
        sys.stdin = stream
    sys.__stdin__ = stream


def open_text(raw, errors):
    import io

    raw.name = {1: "<stdout>", 2: "<stderr>"}[raw.fileno()]
    return io.TextIOWrapper(raw, encoding="utf-8", errors=errors, newline="\n", write_through=True)


def check(command):
    """Says whether code typed so far is the beginning of something longer."""
    import codeop

    flags = future_flags | TOP_LEVEL_AWAIT
    try:
        whole = codeop.compile_command(command["code"], "<stdin>", "single", flags) is not None
    except Exception:
        whole = True  # the run says what is wrong with it
    return {"incomplete": not whole}


def run(command):
    """Runs one cell in `__main__` and describes the outcome."""
    namespace = sys.modules["__main__"].__dict__
    if command["argv"] is not None:
        sys.argv[:] = command["argv"]
    if command["file"]:
        namespace["__file__"] = command["name"]
    else:
        namespace.pop("__file__", None)
    source, name = command["code"], command["name"]
    if command["stdin"] or stdin_used:
        reopen_stdin(command["stdin"])
    before = dict(namespace)
    reply = {}
    try:
        try:
            has_value, value = execute(source, name, namespace)
        finally:
            flush()
        reply["status"] = "completed"
        if has_value:
            describe_value(value, command["max_repr"], reply)
            if command["interactive"] and value is not None:
                namespace["_"] = value
    except SystemExit as exit:
        reply["status"] = "exited"
        reply["code"] = exit_code(exit)
        flush()
    except BaseException as error:
        reply["status"] = "raised"
        reply["exception"] = describe_exception(error)
        del error
    reply["locals"] = changed(before, namespace)
    if command["program"]:
        atexit._run_exitfuncs()
        flush()
    return reply


def execute(source, name, namespace):
    """Runs a cell: `(has_value, value)`, the value that of a last expression."""
    global future_flags
    flags = future_flags | TOP_LEVEL_AWAIT
    tree = compile(source, name, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
    last = tree.body[-1] if tree.body else None
    has_value = isinstance(last, ast.Expr)
    if has_value:
        target = ast.copy_location(ast.Name(VALUE, ast.Store()), last)
        tree.body[-1] = ast.copy_location(ast.Assign([target], last.value), last)
    code = compile(tree, name, "exec", flags, dont_inherit=True)
    future_flags |= code.co_flags & FUTURE_FLAGS
    remember_source(code, source, name)
    try:
        result = eval(code, namespace)
        if code.co_flags & COROUTINE:
            wait_for(result, interrupt=throw_interrupt)
    finally:
        value = namespace.pop(VALUE, None)
    return has_value, value


def remember_source(code, source, name):
    """Lets tracebacks show the lines of a cell, also when later cells have the same name."""
    if name.startswith("<"):
        linecache._register_code(code, source, name)
    else:
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)


def wait_for(awaitable, loop=None, interrupt=asyncio.Task.cancel):
    """Blocks until `awaitable` is done, by suspending the whole stack.

    The result is taken from the task itself, not through the event loop and JavaScript: an exception
    is the same object with the same traceback, and SystemExit is nothing special. An interrupt is
    passed on to the task, which may take its time to end; a second one does not wait for that.
    """
    outer = asyncio._get_running_loop()
    loop = loop or outer or default_loop()
    task = asyncio.ensure_future(awaitable, loop=loop)
    waiter = loop.create_future()
    task.add_done_callback(lambda _: waiter.done() or waiter.set_result(None))
    interrupted = None
    try:
        while not waiter.done():
            try:
                block(waiter)
            except KeyboardInterrupt as error:
                if interrupted is not None:
                    task.cancel()
                    raise
                interrupted = error
                interrupt(task)
    finally:
        asyncio._set_running_loop(outer)
    if interrupted is not None and task.cancelled():
        raise interrupted
    return task.result()


def throw_interrupt(task):
    """Raises KeyboardInterrupt at the `await` that `task` is suspended at."""
    awaited = task._fut_waiter
    if awaited is None or awaited.done():
        task.cancel()
    else:
        awaited.set_exception(KeyboardInterrupt())


def block(promise):
    """Suspends until `promise` is done.

    An interrupt on the way into the wait would end up in Pyodide's conversions, which take it for
    an error of theirs; so it is held back until the wait has begun, and ends that instead.
    """
    bridge.hold()
    try:
        return run_sync(promise)
    finally:
        bridge.release()


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


def default_loop():
    return asyncio.get_event_loop_policy().get_event_loop()


class Loop(webloop.WebLoop):
    """Pyodide's event loop, with the blocking calls that JSPI makes possible."""

    def __init__(self):
        outer = asyncio._get_running_loop()
        super().__init__()
        # A loop runs while it is waited for, not from its making on.
        asyncio._set_running_loop(outer)
        # The waiter sees these two through its task; here they would surface a second time.
        self._system_exit_handler = self._keyboard_interrupt_handler = lambda *args: None
        self._stopper = None

    def run_until_complete(self, future):
        return wait_for(future, self)

    def run_forever(self):
        self._stopper = self.create_future()
        wait_for(self._stopper, self)

    def stop(self):
        if self._stopper is not None and not self._stopper.done():
            self._stopper.set_result(None)


class LoopPolicy(webloop.WebLoopPolicy):
    def new_event_loop(self):
        self._default_loop = Loop()
        return self._default_loop


@functools.wraps(webloop._orig_run)
def asyncio_run(main, *, debug=None, loop_factory=None):
    """`asyncio.run`; inside a running loop it waits there, where CPython would refuse."""
    running = asyncio._get_running_loop()
    if running is not None:
        return wait_for(main, running)
    return webloop._orig_run(main, debug=debug, loop_factory=loop_factory)


def flush():
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            stream.flush()
        except Exception:
            pass


def exit_code(exit):
    code = exit.code
    if code is None:
        return 0
    if isinstance(code, int):
        return (int(code) + 2**31) % 2**32 - 2**31
    try:
        print(code, file=sys.stderr)
    except BaseException:
        pass
    return 1


# Values


class Unrepresentable(Exception):
    """A value that cannot cross to the host; the message says which part and why."""


def describe_value(value, max_repr, reply):
    reply["repr"] = encodable(capped_repr(value, max_repr))
    try:
        reply["value"] = plain(value)
    except Unrepresentable as reason:
        reply["value_error"] = encodable(str(reason))
    except Exception as error:  # guest code that runs when a value is looked at
        kind = type_name(type(value))
        reply["value_error"] = encodable(
            f"a value of type {kind} cannot cross to the host: it raised {type_name(type(error))}"
        )


def plain(value, depth=0):
    """`value` as a tree of exactly the types that cross: scalars, lists and dicts."""
    kind = type(value)
    if kind in SCALARS:
        if kind is str and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise Unrepresentable(
                    f"a str with the lone surrogate {value[error.start]!a} at index {error.start} "
                    "cannot cross to the host"
                ) from None
        return value
    if depth > 100:
        raise Unrepresentable("a value nested deeper than 100 levels cannot cross to the host")
    depth += 1
    if kind in (list, tuple, set, frozenset):
        return [item if type(item) in (int, float) else plain(item, depth) for item in value]
    if kind is dict:
        return {key_of(key, depth): plain(item, depth) for key, item in value.items()}
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    for base in (bool, int, float, str, bytes):
        if isinstance(value, base):
            return plain(base(value), depth)
    if isinstance(value, dict):
        return plain(dict(value), depth)
    if isinstance(value, (list, tuple, set, frozenset)):
        return plain(list(value), depth)
    if hasattr(kind, "__dataclass_fields__"):
        return {name: plain(getattr(value, name), depth) for name in kind.__dataclass_fields__}
    raise Unrepresentable(f"a value of type {type_name(kind)} cannot cross to the host")


def key_of(key, depth):
    if type(key) in SCALARS:
        return plain(key, depth)
    if isinstance(key, (tuple, frozenset)):
        raise Unrepresentable(f"a dict key of type {type_name(type(key))} cannot cross to the host")
    return plain(key, depth)


def type_name(kind):
    try:
        module, name = kind.__module__, kind.__qualname__
        return name if module in ("builtins", "__main__") else f"{module}.{name}"
    except Exception:
        return "object"


def capped_repr(value, limit):
    """`repr(value)` of at most `limit` characters, without building a huge one first."""
    try:
        if type(value) in (str, bytes, bytearray) and len(value) > limit:
            value = value[:limit]
            text = repr(value) + "..."
        elif type(value) in (list, tuple, set, frozenset, dict) and len(value) > limit:
            text = reprlib_repr(value, limit)
        else:
            text = repr(value)
    except Exception as error:
        return f"<{type_name(type(value))} object; repr raised {type(error).__name__}>"
    text = str(text)
    return text if len(text) <= limit else text[:limit] + "..."


def reprlib_repr(value, limit):
    import reprlib

    short = reprlib.Repr()
    short.maxlist = short.maxtuple = short.maxset = short.maxfrozenset = short.maxdict = limit // 8
    short.maxstring = short.maxother = limit
    return short.repr(value)


def changed(before, namespace):
    """The names this run bound or rebound, with type and capped repr; no modules, no private names."""
    found = []
    missing = object()
    for name, value in list(namespace.items()):
        if type(name) is not str or name.startswith("_") or type(value) is types.ModuleType:
            continue
        if before.get(name, missing) is not value:
            try:
                description = [name, type_name(type(value)), capped_repr(value, 500)]
                found.append([encodable(text) for text in description])
            except BaseException:
                continue
    return found


# Exceptions


def encodable(text):
    return text.encode("utf-8", "backslashreplace").decode()


def describe_exception(error, seen=None):
    seen = seen or {id(error)}
    description = {
        "type": encodable(type(error).__name__),
        "message": message_of(error),
        "args": json_args(error),
        "traceback": format_traceback(error),
        "cause": None,
    }
    cause = error.__cause__
    if cause is None and not error.__suppress_context__:
        cause = error.__context__
    if cause is not None and id(cause) not in seen and len(seen) < 16:
        seen.add(id(cause))
        description["cause"] = describe_exception(cause, seen)
    return description


def message_of(error):
    try:
        return encodable(str(error))
    except BaseException:
        return "<exception str() failed>"


def json_args(error):
    try:
        text = json.dumps(error.args, allow_nan=False, ensure_ascii=False)
        text.encode()  # lone surrogates are no JSON
        return text
    except BaseException:
        return None


def format_traceback(error):
    """The traceback as python prints it, without the frames of the sandbox itself."""
    try:
        shown = traceback.TracebackException.from_exception(error, compact=True)
        strip(shown)
        return encodable("".join(shown.format()))
    except BaseException:
        return f"{type(error).__name__}: {message_of(error)}\n"


def strip(shown):
    if shown is None:
        return
    frames = [frame for frame in shown.stack or () if not is_ours(frame.filename)]
    shown.stack = traceback.StackSummary.from_list(frames) if frames else None
    strip(shown.__cause__)
    strip(shown.__context__)
    for inner in shown.exceptions or ():
        strip(inner)


def is_ours(filename):
    return filename == GLUE or filename.startswith(PYODIDE)


COMMANDS = {"start": start, "run": run, "check": check}
