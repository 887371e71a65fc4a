"""The guest's half of a Monty session: runs what is fed, and asks the client for what is not here.

What is asked for is a list of a kind and its fields; the answer is a list of a kind and its fields,
too. The host refuses what is malformed, so that guest code that calls `ask` only gets errors.
"""

import ast
import asyncio
import builtins
import functools
import importlib.abc
import importlib.machinery
import inspect
import linecache
import opcode
import os
import posixpath
import random
import sys
import time

import _monty_exceptions as exceptions
import _monty_returns as returns
import _monty_values as values

MAIN = sys.modules["__main__"].__dict__
tool = MAIN.pop("_monty_ask")
VALUE = "<value>"  # holds the value of a last expression; no guest code can spell it
FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
FUTURE_FLAGS = 0x1FF0000  # every __future__ flag of this CPython
MOST_FRAMES = 200
MOST_TURNS = 100  # of the event loop, that a task may take before others are asked to wait
INSIDE = "<isolet>"  # begins the file names of isolet's own code

feeds = 0
future_flags = 0
answers_imports = False


class Aborted(BaseException):
    """The client has ended this feed."""


class Names(dict):
    """The builtins, and what the client has: a name that nothing defines is asked for."""

    def __missing__(self, name):
        if name in vars(builtins):
            return vars(builtins)[name]
        if name.startswith("__") and name.endswith("__"):
            raise KeyError(name)
        frame = sys._getframe(1)
        if is_call(frame):
            return values.host_function(name)
        found = lookup(frame, name, None)
        if found is UNDEFINED:
            raise KeyError(name)
        return found


UNDEFINED = object()


def is_call(frame):
    """Whether what the frame loads is called where it stands: then the client is not asked for the
    name, but for the call.
    """
    code, at = frame.f_code.co_code, frame.f_lasti
    operation = opcode.opname[code[at]]
    if operation in ("LOAD_GLOBAL", "LOAD_ATTR"):
        return bool(code[at + 1] & 1)
    return operation == "LOAD_NAME" and opcode.opname[code[at + 2]] == "PUSH_NULL"


def lookup(frame, name, object_id):
    kind, *rest = ask(["name", name, object_id, position(frame)])
    if kind == "undefined":
        return UNDEFINED
    return settle(kind, rest)


def ask_attribute(value, object_id, name):
    frame = sys._getframe(2)
    if is_call(frame):
        return values.host_function(name, None, object_id)
    found = lookup(frame, name, object_id)
    if found is UNDEFINED:
        raise AttributeError(f"{values.shown_kind(value)} has no attribute {name!r}")
    return found


def ask(question):
    """Asks the client, and waits for the answer."""
    global asking
    asking += 1
    try:
        return tool(question)
    finally:
        asking -= 1
        if asking == 0 and quiet is not None and not quiet.done():
            quiet.set_result(None)


def call_host(name, args, kwargs, object_id):
    arena = values.Arena()
    positional = [arena.add(value) for value in args]
    named = []
    for key, value in kwargs.items():
        named += arena.add(key), arena.add(value)
    where = position(caller())
    kind, *rest = ask(["call", name, positional, named, arena.nodes, object_id, where])
    return settle(kind, rest)


def ask_system(kind, *fields, expected=object):
    """Asks for an operation of the system. Returns `UNDEFINED` if the client does not do it, which
    an answer of another type than what the operation returns says, too.
    """
    answer, *rest = ask(["system", kind, list(fields), position(caller())])
    found = UNDEFINED if answer in ("not_handled", "not_found") else settle(answer, rest)
    return found if isinstance(found, expected) else UNDEFINED


def settle(kind, rest):
    """What an answer stands for: a value, an exception or something to wait for."""
    if kind == "value":
        nodes, root = rest
        return values.restore(nodes)[root]
    if kind == "future":
        future = waiting[rest[0]] = HostFuture(rest[0])
        return future
    if kind == "raised":
        raise exceptions.exception_of(*rest)
    if kind == "not_found":
        raise NameError(f"name {rest[0]!r} is not defined", name=rest[0])
    raise Aborted


class HostFuture:
    """A call that the client answers later."""

    def __init__(self, number):
        self.number = number
        self.outcome = None  # a function that returns the value, or raises
        self.waiters = []

    def __await__(self):
        if self.outcome is None:
            waiter = asyncio.get_running_loop().create_future()
            self.waiters.append(waiter)
            waiting.setdefault(self.number, self)
            begin_to_resolve()
            yield from waiter
        return self.outcome()

    def settle(self, outcome):
        self.outcome = outcome
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)

    def __repr__(self):
        return f"<call {self.number} of the host, {'answered' if self.outcome else 'pending'}>"


waiting = {}  # by their numbers: the calls that the client has not answered
resolver = None  # the task that asks for their answers
asking = 0  # how many questions wait for their answers in place
quiet = None  # what is done when there are none


def begin_to_resolve():
    global resolver
    if resolver is None or resolver.done():
        resolver = asyncio.ensure_future(resolve())


async def resolve():
    """Asks for answers whenever no task can go on without one."""
    global quiet
    try:
        while any(future.waiters for future in waiting.values()):
            await until_idle()
            if asking:
                # A task waits for the client in a call, and the client may answer that one, too.
                quiet = asyncio.get_running_loop().create_future()
                await quiet
                continue
            kind, *rest = await tool.aio(["resolve", list(waiting), position(None)])
            if kind != "results":
                raise Aborted
            nodes, answers = rest
            objects = values.restore(nodes)
            for number, kind, *rest in answers:
                if kind == "value":
                    outcome = functools.partial(objects.__getitem__, *rest)
                else:
                    outcome = functools.partial(settle, kind, rest)
                future = waiting.pop(number, None)
                if future is not None:
                    future.settle(outcome)
    except BaseException as error:
        # Whoever waits raises it; nobody else would.
        for future in [*waiting.values()]:
            future.settle(functools.partial(throw, error))
        waiting.clear()


def throw(error):
    raise error


async def until_idle():
    """Waits until only this task is to run next; a task that never rests does not delay it for
    ever.
    """
    loop = asyncio.get_running_loop()
    scheduled = 0

    def counting(callback, *args, context=None):
        nonlocal scheduled
        scheduled += 1
        return type(loop).call_soon(loop, callback, *args, context=context)

    loop.call_soon = counting
    try:
        for _ in range(MOST_TURNS):
            before = scheduled
            await really_sleep(0)
            if scheduled - before <= 1:  # its own
                return
    finally:
        del loop.call_soon


really_sleep = asyncio.sleep
really_block = time.sleep


def install(policy):
    """Takes the settings of a session."""
    global answers_imports
    values.ask_attribute, values.call_host = ask_attribute, call_host
    MAIN["__builtins__"] = Names(vars(builtins), _monty_feed=feed)
    answers_imports = policy["imports"]
    if policy["recursion"]:
        sys.setrecursionlimit(policy["recursion"])
    if policy["seed"] is not None:
        random.seed(policy["seed"])
    install_sleep(policy["sleep"], policy["longest_sleep"])
    os.getenv = getenv
    sys.meta_path.append(HostModules())


def install_sleep(mode, longest):
    """Has the client sleep, which counts as its time; `mode` says how it is asked. What it does not
    do, the guest does itself.
    """

    def sleep(seconds):
        really_block(-1 if seconds < 0 else 0)  # refuses what is no time
        if seconds > 0 and mode != "zero":
            seconds = float(seconds if longest is None else min(seconds, longest))
            if ask_system(f"{mode}sleep", seconds) is UNDEFINED:
                really_block(seconds)

    async def sleep_async(delay, result=None):
        if delay > 0 and mode != "zero":
            delay = float(delay if longest is None else min(delay, longest))
            slept = ask_system(f"async_{mode}sleep", delay)
            if slept is UNDEFINED:
                await really_sleep(delay)
            elif isinstance(slept, HostFuture):
                await slept
        else:
            await really_sleep(0)
        return result

    sleep_async.__name__ = sleep_async.__qualname__ = "sleep"
    time.sleep = sleep
    asyncio.sleep = asyncio.tasks.sleep = sleep_async


def getenv(key, default=None):
    """`os.getenv`: for the code that was fed, of the client's variables before the guest's own."""
    if not isinstance(key, str) or not is_fed(caller()):
        return os.environ.get(key, default)
    found = ask_system("getenv", key)
    return os.environ.get(key, default) if found is UNDEFINED or found is None else found


class HostModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports what the client has, for the code that was fed."""

    def find_spec(self, name, path=None, target=None):
        if not answers_imports or "." in name or not is_fed(importer()):
            return None
        module = ask_system("import", name)
        if module is UNDEFINED or not isinstance(module, type(sys)):
            return None
        return importlib.machinery.ModuleSpec(name, self, loader_state=module)

    def create_module(self, spec):
        return spec.loader_state

    def exec_module(self, module):
        adopt(module)


def adopt(module):
    """Makes the modules in a module importable by themselves."""
    for name, value in list(vars(module).items()):
        if isinstance(value, type(sys)) and hasattr(value, "_monty_id"):
            sys.modules[f"{module.__name__}.{name}"] = value
            adopt(value)


def caller():
    """The frame of the guest's code that a call of this module comes from."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(INSIDE):
        frame = frame.f_back
    return frame


def importer():
    frame = caller()
    while frame is not None and "importlib" in frame.f_code.co_filename:
        frame = frame.f_back
    return frame


def is_fed(frame):
    return frame is not None and frame.f_globals is MAIN


def position(frame):
    """Where a frame stands: its file, and the offsets in bytes of what it evaluates."""
    if frame is None:
        return None
    code = frame.f_code
    spans = code.co_positions()
    line, end_line, column, end_column = next(
        span for at, span in enumerate(spans) if at == frame.f_lasti // 2
    )
    if None in (line, end_line, column, end_column):
        return None
    lines = linecache.getlines(code.co_filename)
    if len(lines) < end_line:
        return None
    sizes = [len(text.encode()) for text in lines[:end_line]]
    start, end = sum(sizes[: line - 1]) + column, sum(sizes[: end_line - 1]) + end_column
    return [code.co_filename, start, end]


def feed():
    """Runs what the host has put into `_monty_fed`. Returns what became of it, or the coroutine
    that does.
    """
    global feeds
    source, nodes, inputs, directory = MAIN.pop("_monty_fed")
    waiting.clear()
    name = f"<python-input-{feeds}>"
    feeds += 1
    try:
        if directory:
            sys.modules["_monty_files"].enter(posixpath.normpath(directory))
        objects = values.restore(nodes)
        for variable, index in inputs:
            MAIN[variable] = objects[index]
        code = compile_source(source, name)
        result = eval(code, MAIN)
        if code.co_flags & inspect.CO_COROUTINE:
            return finish(result)
        return completed()
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        return raised(error)


async def finish(coroutine):
    try:
        await coroutine
        return completed()
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        return raised(error)


def compile_source(source, name):
    global future_flags
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    flags = future_flags | FLAGS
    tree = compile(source, name, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        target = ast.copy_location(ast.Name(VALUE, ast.Store()), last)
        tree.body[-1] = ast.copy_location(ast.Assign([target], last.value), last)
    returns.rewrite(tree, name, flags)
    code = compile(tree, name, "exec", flags, dont_inherit=True)
    future_flags |= code.co_flags & FUTURE_FLAGS
    return code


def completed():
    returns.take(MAIN, VALUE)
    returns.forget(MAIN)
    arena = values.Arena()
    root = arena.add(MAIN.pop(VALUE, None))
    return ["complete", arena.nodes, root]


def raised(error):
    MAIN.pop(VALUE, None)
    returns.forget(MAIN)
    if isinstance(error, Aborted):
        return ["aborted"]
    if isinstance(error, SyntaxError) and error.filename and is_named(error.filename):
        start, end = [error.lineno, error.offset], [error.end_lineno, error.end_offset]
        if None in start or not all(start):
            start = [error.lineno or 1, 1]
        if None in end or not all(end) or end < start:
            end = [start[0], start[1] + 1]
        line = (error.text or "").rstrip("\n")
        frame = [error.filename, *start, *end, None, line or None, False, True]
        return ["raised", "SyntaxError", error.msg, [frame], None]
    name, message = exceptions.describe_exception(error)
    data = exceptions.exception_data(error) if name in exceptions.EXACT else None
    return ["raised", name, message, frames(error.__traceback__), data]


def is_named(filename):
    return filename.startswith("<python-input-")


def frames(traceback):
    found = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not code.co_filename.startswith(INSIDE):
            found.append(describe_frame(code, traceback))
        traceback = traceback.tb_next
    if len(found) > MOST_FRAMES:
        found[MOST_FRAMES // 2 : -MOST_FRAMES // 2] = []
    return found


def describe_frame(code, traceback):
    spans = code.co_positions()
    span = next((span for at, span in enumerate(spans) if at == traceback.tb_lasti // 2), None)
    line, end_line, column, end_column = span or (None,) * 4
    line = line or traceback.tb_lineno or 1
    shown = linecache.getline(code.co_filename, line).rstrip("\n")
    end_line = end_line or line
    start = characters(shown, column) + 1
    last = shown if end_line == line else linecache.getline(code.co_filename, end_line)
    end = characters(last, end_column) + 1 if end_column is not None else len(shown) + 1
    hides_caret = shown.lstrip().startswith(("raise", "assert", "import", "from"))
    place = [line, start, end_line, end]
    return [code.co_filename, *place, code.co_name, shown or None, hides_caret, False]


def characters(line, column):
    return len(line.encode()[: column or 0].decode("utf-8", "replace"))
