"""The guest half of a session: runs cells and reports what became of them.

The host relies on nothing said here: limits, deadlines and permissions are enforced outside. A
guest that tampers with this module only spoils its own results.
"""

import asyncio
import builtins
import codeop
import contextlib
import contextvars
import gc
import importlib
import io
import os
import random
import sys
import time
import types
import warnings

import _isolet_absent as absent
import _isolet_additions as additions
import _isolet_alarms as alarms
import _isolet_async_processes as async_processes
import _isolet_awaits as awaits
import _isolet_cells as cells
import _isolet_clients as clients
import _isolet_completion as completion
import _isolet_displays as displays
import _isolet_endings as endings
import _isolet_errnos
import _isolet_exchange as exchange
import _isolet_figures as figures
import _isolet_files as files
import _isolet_fonts as fonts
import _isolet_foreign as foreign
import _isolet_forks as forks
import _isolet_frames as frames
import _isolet_imports as imports
import _isolet_integers as integers
import _isolet_ipython as ipython
import _isolet_kernel as kernel
import _isolet_linear as linear
import _isolet_locks as locks
import _isolet_looking_back as looking_back
import _isolet_magics as magics
import _isolet_modules as modules
import _isolet_packages as packages
import _isolet_processes as processes
import _isolet_programs as programs
import _isolet_reserve as reserve
import _isolet_returns as returns
import _isolet_saving as saving
import _isolet_interactive_shell as interactive
import _isolet_shell as system_shell
import _isolet_shell_cells as shell_cells
import _isolet_tables as tables
import _isolet_threads as threads
import _isolet_tools as tools
import _isolet_variables as variables
import _isolet_waits as waits
import _isolet_zone as zone
from _isolet_errors import describe_exception
from _isolet_frames import BYTES_HEADER, dump, give, receive
from _isolet_immortals import mortals  # noqa: F401  the boot calls it
from _isolet_values import describe_value

COROUTINE = 0x80  # inspect.CO_COROUTINE

BRIDGE = (
    *("schedule", "mount", "rehearse_mount", "interrupt", "hold", "release"),
    *("sleep", "take", "give", "display"),
    *("spawn", "park", "unpark", "set_zone"),
    *("has_output", "terminal", "set_alarm", "take_alarm", "spare"),
    *("call", "answered", "answered_here", "answer", "cancel", "submit", "import_package"),
    *("foreign", "is_kept", "save", "rehearse_save", "guard"),
    *("order", "aligned", "keep_order", "resume_order"),
    *("is_looked_back", "watch_line", "end_look_back"),
    *("net_check", "net_connect", "net_start", "net_send", "net_read", "net_close"),
)

SYSTEM = sys.__dict__
SIMPLE = displays.SIMPLE
PLOTS = "matplotlib.pyplot"
OUTPUT = {
    1: ("stdout", "__stdout__", "strict"),
    2: ("stderr", "__stderr__", "backslashreplace"),
}

bridge = None
no_memory = b""  # what is told when even that is not enough
spare = {}  # copies of the output's file descriptors
streams = {}  # the output as the guest gets it
pristine = {}  # the attributes of these streams if nobody has changed them
stdin_used = False
context = contextvars.Context()  # of all cells, so that what one sets is there in the next


adopt_errnos = _isolet_errnos.adopt


def prepare():
    """Runs once, when the memory image is made: imports what most programs need."""
    threads.install()  # before anything has taken a lock
    forks.install()
    import collections, dataclasses, datetime, enum, functools, itertools  # noqa: E401, F401
    import json, math, operator, pathlib, re, string, textwrap, typing  # noqa: E401, F401

    import concurrent.futures.thread  # noqa: F401

    waits.install()
    awaits.install()
    tools.prepare()
    clients.install()
    zone.install()
    additions.install()
    imports.PATCHES["multiprocessing.pool"] = threads.patch_pool
    imports.PATCHES["pydoc"] = modules.patch_pydoc
    figures.install(imports.PATCHES, imports.MODULES)
    tables.install()
    ipython.install(imports.STAND_INS)
    kernel.install(imports.MODULES, imports.PATCHES)
    magics.install(interactive.shell)
    alarms.install()
    async_processes.install(waits.Loop)
    for part in (integers, linear, fonts, absent, processes):
        part.install(imports.PATCHES)
    imports.install()
    builtins.display = displays.display


def preload(modules):
    """Imports modules of packages, when the memory image is made."""
    packages.loaded()
    for name in modules:
        module = importlib.import_module(name)
        with warnings.catch_warnings(action="ignore"):
            for attribute in getattr(module, "__all__", ()):
                # Many a package imports the rest of itself when it is asked for; what then fails is
                # not missed yet.
                with contextlib.suppress(Exception):
                    getattr(module, attribute)
    packages.import_first_used()


def freeze():
    """Keeps what the image has out of collections: they would walk it before they come to the
    guest's garbage.
    """
    endings.note(main_namespace())
    reserve.keep()  # so that no session has to write to so much memory
    gc.freeze()


def attach(host_bridge):
    """Connects a restored interpreter to its host."""
    global bridge, no_memory
    # Looked up once: each look into a JavaScript object costs more than the calls do.
    bridge = types.SimpleNamespace(**{name: getattr(host_bridge, name) for name in BRIDGE})
    frames.attach(bridge)
    waits.attach(bridge)
    locks.attach(bridge)
    threads.attach(bridge)
    zone.attach(bridge)
    tools.attach(bridge)
    exchange.attach(bridge)
    alarms.attach(bridge)
    foreign.attach(bridge)
    packages.attach(bridge)
    system_shell.attach(host_bridge.shell)
    displays.attach(bridge)
    saving.attach(bridge)
    exception = {"type": "MemoryError", "message": "", "traceback": "MemoryError\n"}
    no_memory, _ = dump({"status": "raised", "exception": exception}, None)


def handle(length):
    """Carries out one command of the host."""
    asyncio._set_running_loop(None)
    carry_out(length, bridge.release)


def peek(length):
    """Carries out one command while another one waits for something."""
    bridge.hold()
    try:
        carry_out(length, lambda: None)
    finally:
        bridge.release()


def carry_out(length, release):
    """Takes a command frame from the host, carries it out and gives the reply."""
    try:
        command = receive(length)
        if command["command"] in READERS:
            release()  # they may run the guest's code, and leave nothing half-done
        reply = COMMANDS[command["command"]](command)
        data, text = dump(reply, command.get("max_value"))
        # From here on an interrupt is nobody's, and would end the session.
        give(data, text)
        return
    except BaseException as error:  # an interrupt, no memory, or guest code that reports run into
        bridge.hold()
        reserve.release()
        try:
            reply = {"status": "raised", "exception": describe_exception(error)}
            data, _ = dump(reply, None)
        except MemoryError:
            data = no_memory
    give(data, "")


def start(command):
    """Makes a restored interpreter this session's own: mounts, entropy, environment, streams,
    tools.
    """
    if "order" in command:
        looking_back.begin_order(bridge, command["order"])
    mounts = command["mounts"]
    if mounts:
        bridge.mount(id(mounts) + BYTES_HEADER, len(mounts))
    reseed()
    os.environ.clear()
    os.environ.update(command["env"])
    if "TZ" in os.environ:
        time.tzset()
    if "MPLBACKEND" in command["env"]:
        figures.start()
    if "PYTHONPATH" in command["env"]:
        programs.search_environment(command["env"])
    become_terminal(command)
    for fd in OUTPUT:
        if fd not in spare:
            spare[fd] = os.dup(fd)
    reopen_output()
    packages.start(command["packages"])
    integers.begin()
    foreign.begin()
    return define(command)


def become_terminal(command):
    terminal = command.get("terminal")
    if terminal is not None:
        bridge.terminal(*terminal)


def resume(command):
    """Goes on as a session that was saved."""
    order = command.get("order")
    is_recorded = order and order[-1]
    is_other = is_recorded and looking_back.begin_order(bridge, order)  # before anything waits
    os.environ.update(command["env"])
    if "TZ" in command["env"]:
        time.tzset()
    become_terminal(command)
    packages.look_again()
    packages.start(command["packages"])
    waits.resume()
    foreign.begin()
    reopen_output()
    if not is_recorded:
        is_other = looking_back.resume_order(bridge, order)
    if is_other:
        reseed()
    return {}


def end(command):
    """Ends the session as python does at its exit."""
    try:
        threads.finish()
    finally:  # also if the time was over while a thread went on
        context.run(endings.end, main_namespace(), False)
    return {}


def save(command):
    # Not for a checkpoint: to look for files writes to all the memory, of which a copy then
    # shares little with its template. And files of mounts would change while no code runs.
    if "flush" in command:
        endings.flush_files()
    saving.begin()
    return {}


def reseed():
    """Gives the session random numbers of its own, where the image has the state of a generator."""
    random.seed()
    if "tempfile" in sys.modules:
        sys.modules["tempfile"]._name_sequence = None
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


def rehearse(command):
    """Starts a session and runs a cell for nobody: by the second time all that is compiled."""
    cell = {"code": "print(end='')", "name": "<rehearsal>", "role": "cell", "argv": None}
    for _ in range(command["times"]):
        bridge.rehearse_mount()
        start({"env": {}, "packages": False, "mounts": b"", "tools": [], "submit": []})
        tools.rehearse()
        run(cell | {"file": False, "stdin": False, "max_repr": 1})
        saving.rehearse()
    cells.forget()
    return {}


def packages_loaded(command):
    packages.loaded()
    return {}


def fork(command):
    moment = command["moment"]
    if moment == "before":
        bridge.keep_order()
    forks.run(moment)
    if moment == "after_in_parent":
        bridge.resume_order()  # so that the next copy goes on as this one
    return {}


def define(command):
    tools.define(command, main_namespace())
    if "modules" in command:
        modules.define(command, main_namespace())
    return {}


def reopen_output():
    """Gives every run whole output streams, whatever the last one has put in their places."""
    has_files = bridge.has_output()
    for fd, (name, original, errors) in OUTPUT.items():
        stream = streams.get(name)
        has_file = has_files or not restore_file(fd)
        try:
            is_whole = stream is not None and not stream.closed
        except ValueError:  # it was detached from its file
            is_whole = False
        if not has_file or not is_whole or stream.__dict__ != pristine[name]:
            streams[name] = stream = open_text(fd, errors)
            pristine[name] = {}
        SYSTEM[name] = SYSTEM[original] = stream


def restore_file(fd):
    """Opens the file descriptor if it is closed; whether it was."""
    try:
        os.fstat(fd)
        return False
    except OSError:
        os.dup2(spare[fd], fd)
        return True


def reopen_stdin(used):
    """Starts a run's own standard input: what the last run left in the buffer is not for it."""
    global stdin_used
    stdin_used = used
    stream = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)
    stream.buffer.raw.name = "<stdin>"
    if sys.stdin is sys.__stdin__:
        sys.stdin = stream
    sys.__stdin__ = stream


def open_text(fd, errors):
    # Unbuffered, as `python -u`: what was written is kept even if the run is killed right after.
    raw = open(fd, "wb", buffering=0, closefd=False)
    raw.name = {1: "<stdout>", 2: "<stderr>"}[fd]
    return io.TextIOWrapper(raw, encoding="utf-8", errors=errors, newline="\n", write_through=True)


def open_output():
    """Makes the output streams of the image. Returns where `text_output.js` finds what it needs."""
    made = []
    for fd, (name, _, errors) in OUTPUT.items():
        streams[name] = stream = open_text(fd, errors)
        stream.write("")  # what changes at the first time has changed then
        attributes = id(vars(stream))
        file = id(stream.buffer)
        made.append({"stream": id(stream), "file": file, "number": fd, "attributes": attributes})
    return {
        "text": id(str),
        "sample": id("write"),
        "zero": id(0),
        "last": id(256),
        "none": id(None),
        "method": id(io.TextIOWrapper.__dict__["write"]),
        "print": id(print),
        "system": id(SYSTEM),
        "stdoutName": id(sys.intern("stdout")),
        "stdout": id(sys.stdout),
        "streams": made,
    }


def keep_output():
    """Notes what the attributes of these streams are."""
    pristine.update((name, dict(vars(stream))) for name, stream in streams.items())


def check(command):
    """Says whether code typed so far is the beginning of something longer."""
    if command["shell"]:
        return {"flag": not shell_cells.is_whole(command["code"])}
    flags = cells.future_flags | cells.TOP_LEVEL_AWAIT
    try:
        whole = codeop.compile_command(command["code"], "<stdin>", "single", flags) is not None
    except Exception:
        whole = True  # the run says what is wrong with it
    return {"flag": not whole}


def run(command):
    """Runs one cell in `__main__` and describes the outcome."""
    namespace = main_namespace()
    inputs, is_shell = command.pop("inputs", {}), "shell" in command
    if not is_shell:
        namespace.update(inputs)
    if command["argv"] is not None and not is_shell:
        sys.argv[:] = command["argv"]
    if command["file"]:
        namespace["__file__"] = command["name"]
    else:
        namespace.pop("__file__", None)
    source, name = command["code"], command["name"]
    shell = interactive.shell if "ipython" in command else None
    if command["stdin"] or stdin_used:
        reopen_stdin(command["stdin"])
    if command["role"] != "prompt":
        reopen_output()
    before = dict(namespace)
    reply, is_shown, keeps = {}, False, False
    tables.is_wanted = "tables" in command
    figures.has_pictures = "pictures" in command
    if integers.is_untold:  # the image has numpy
        integers.tell()
    try:
        try:
            if is_shell:
                has_value, value = start_program(shell_cells.run, command, inputs)
            elif "program" in command:
                programs.place(command)
                begin = programs.STARTS[command["program"]]
                has_value, value = start_program(begin, source, namespace)
            else:
                programs.place(command)
                has_value, value = execute(source, name, namespace, command, shell)
                # At a prompt a value may exit, as at python's.
                is_shown = command["role"] != "prompt"
                is_simple = not has_value or type(value) in SIMPLE
                is_displayed = not is_simple and context.run(displays.result, value)
                if PLOTS in sys.modules and command["role"] == "cell":
                    context.run(figures.end_of_cell, None if is_displayed else value)
        finally:
            flush()
        reply["status"] = "completed"
        if has_value:
            context.run(describe_value, value, command["max_repr"], reply, shell is not None)
            if shell is not None:
                shell.keep(namespace, value)
            if command["role"] == "prompt" and value is not None:
                namespace["_"] = value
    except tools.Submission:
        reply["status"] = "completed"
    except SystemExit as exit:
        reply["exception"] = describe_exception(exit)
        if is_shown:
            reply["status"] = "raised"
        else:
            reply["status"] = "exited"
            reply["code"] = exit_code(exit, shell is None)
        flush()
    except BaseException as error:
        if shell is not None and issubclass(type(error), MemoryError):
            shell.release(namespace)
        reply["status"] = "raised"
        reply["exception"] = describe_exception(error)
        keeps = looking_back.keep(error)
        del error
    alarms.end()
    reply["locals"] = context.run(variables.changed, before, namespace)
    if command["role"] == "program" and not is_shell and not keeps:
        threads.finish()
        before = value = None  # what they hold is the program's
        context.run(endings.end, namespace, "keep" in command)
        flush()
    return reply


def execute(source, name, namespace, command, shell):
    """Runs a cell: `(has_value, value)`, the value that of a last expression, or what was returned;
    awaited, if it can be.

    A script's last expression is awaited as little as python would, and what is typed at a prompt
    is shown as it is.
    """
    role, may_return = command["role"], "return" in command
    if shell is not None:
        shell.begin(namespace, source, name)
    code, shown = cells.compile_cell(source, name, may_return, shell)
    cells.remember_source(code, shown, name)
    try:
        reserve.keep()
        if role != "program":
            waits.enter_cell()
        bridge.release()  # from here on an interrupt is the guest's
        result = context.run(eval, code, namespace)
        if code.co_flags & COROUTINE:
            waits.wait_for(result, interrupt=waits.throw_interrupt, context=context)
        if may_return:
            returns.take(namespace, cells.VALUE)
        has_value = cells.VALUE in namespace
        if role == "cell" and has_value and waits.is_awaitable(namespace[cells.VALUE]):
            awaited = namespace[cells.VALUE]
            namespace[cells.VALUE] = waits.wait_for(
                awaited, interrupt=waits.throw_interrupt, context=context
            )
        if role != "program":
            waits.leave_cell()
    finally:
        reserve.use()
        value = namespace.pop(cells.VALUE, None)
        if may_return:
            returns.forget(namespace)
    return has_value, value


def start_program(function, *arguments):
    """Runs what is no cell of Python, under the conditions of one."""
    try:
        reserve.keep()
        bridge.release()  # from here on an interrupt is the guest's
        context.run(function, *arguments)
    finally:
        reserve.use()
    return False, None


def flush():
    for name in ("stdout", "stderr", "__stdout__", "__stderr__"):
        try:
            SYSTEM[name].flush()
        except Exception:
            pass


def exit_code(exit, is_told):
    """The status that python exits with. What else `sys.exit` was given is told as python does."""
    try:
        code = exit.code
        if code is None:
            return 0
        if issubclass(type(code), int):
            return (int.__index__(code) + 2**31) % 2**32 - 2**31
        if is_told:
            print(code, file=sys.stderr)
    except BaseException:
        pass
    return 1


MAIN = sys.modules["__main__"]


def main_namespace():
    # A guest may have emptied `sys.modules`.
    return sys.modules.setdefault("__main__", MAIN).__dict__


READERS = frozenset(["check", "complete", "end", "fork", "get", "resume", "save", "variables"])

COMMANDS = {
    "rehearse": rehearse,
    "start": start,
    "run": run,
    "fork": fork,
    "save": save,
    "end": end,
    "resume": resume,
    "check": check,
    "set": lambda command: variables.set_variables(command, main_namespace()),
    "complete": lambda command: completion.complete(command, main_namespace()),
    "get": lambda command: variables.get_variable(command, main_namespace()),
    "delete": lambda command: variables.delete_variable(command, main_namespace()),
    "put_file": files.put,
    "get_file": files.get,
    "list_files": files.list_directory,
    "delete_file": files.delete,
    "packages_loaded": packages_loaded,
    "define": define,
    "bind_locals": lambda command: looking_back.bind_locals(main_namespace()),
    "variables": lambda command: {
        "locals": variables.list_variables(main_namespace(), tools.is_function)
    },
}
