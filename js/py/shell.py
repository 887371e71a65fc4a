"""Runs commands of a shell, of which none is a process.

The shell is a WebAssembly module beside the interpreter (`js/shell.js`). It goes on step by step:
commands that are ours are carried out here, between two steps.
"""

import _thread
import contextlib
import io
import json
import math
import os
import sys
import time
import types

import _isolet_shell_commands as commands
from _isolet_frames import BYTES_HEADER

FAILED, FINISHED, CALL, WAIT, LOST, INPUT = range(6)  # what a step asks for

CALLS = (
    *("begin", "end", "run", "resume", "cancel", "state", "done", "more"),
    *("text_size", "text", "input_size", "input"),
)
PIECE = 1 << 18  # bytes of input at a time, at most
INTERRUPTED = 130  # the status of what an interrupt has ended
LONGEST = 3600.0  # seconds between two looks at a time limit

bridge = None


def attach(host_bridge):
    global bridge
    bridge = types.SimpleNamespace(**{name: getattr(host_bridge, name) for name in CALLS})


class Control:
    """Ends a command from outside: by a time limit, or from another thread."""

    def __init__(self, timeout=None):
        self.deadline = math.inf if timeout is None else time.monotonic() + timeout
        self.killed = _thread.allocate_lock()
        self.killed.acquire()
        self.is_killed = False

    def kill(self):
        if not self.is_killed:
            self.is_killed = True
            self.killed.release()

    def wait(self, until):
        """Waits until a time, unless the command is ended before; whether it goes on."""
        moment = min(until - time.time(), self.deadline - time.monotonic())
        if not self.is_killed:
            self.killed.acquire(timeout=max(0, min(moment, LONGEST)))
        return not self.is_killed and time.monotonic() < self.deadline


def run(script, arguments=(), name="sh", *,
        stdin=b"", out=1, err=2, env=None, cwd=None, control=None, between=None):  # fmt: skip
    """Runs a script in a shell of its own. What it prints goes to these descriptors as it comes.

    Its input are bytes, or a function that returns more of it whenever a command wants it, and
    nothing at its end. Returns its status, or `None` if `control` has ended it. Calls `between`
    before each wait.
    """
    directory = os.path.abspath(cwd) if cwd is not None else os.getcwd()
    session = begin(directory, os.environ if env is None else env)
    try:
        request = {"script": script, "name": name, "args": list(arguments)}
        return drive(session, request, stdin, (out, err), control or Control(), between)
    finally:
        bridge.end(session)


def begin(directory, variables):
    """Begins a shell; its number."""
    config = {
        "cwd": directory,
        "env": dict(variables),
        "commands": sorted(commands.OURS),
        "others": True,
    }
    config = encoded(config)
    session = bridge.begin(*place(config))
    if session == 0:
        raise OSError(text() or "the shell cannot start")
    return session


def drive(session, request, stdin, outputs, control, between=None):
    """Carries a request out in a shell, step by step."""
    flush()
    is_live = callable(stdin)
    request = encoded({**request, "live": is_live})
    given = place(b"" if is_live else stdin)
    step = bridge.run(session, *place(request), *given, *outputs)
    while step != FINISHED:
        if between is not None:
            between()
        if not take_step(session, step, control, stdin):
            bridge.cancel(session)
        step = bridge.resume(session)
    finished = json.loads(text())
    is_over = finished["cancelled"] and (control.is_killed or is_late(control))
    return None if is_over else finished["status"]


def state(session):
    """The directory and the exported variables of a shell; `None` if there is no such shell."""
    return json.loads(text()) if bridge.state(session) == FINISHED else None


def is_late(control):
    return time.monotonic() >= control.deadline


def take_step(session, step, control, stdin):
    """Does what the shell waits for; whether it goes on."""
    if step == LOST:
        raise MemoryError("the shell has no memory left")
    if step == FAILED:
        raise OSError(text())
    found = json.loads(text())
    if step == WAIT:
        return control.wait(found / 1e6 if found is not None else 0)
    if step == INPUT:
        piece = stdin()
        bridge.more(session, *place(piece))
    else:
        piped = bytes(bridge.input_size())
        bridge.input(*place(piped))
        reads = commands.Input(piped, stdin) if found["live"] else io.BytesIO(piped)
        try:
            status, out, err = commands.carry_out(found, reads)
        except BaseException:
            give_up(session, found["id"])
            raise
        bridge.done(session, found["id"], status, *place(out), *place(err))
    return not control.is_killed and not is_late(control)


def give_up(session, call):
    """Ends the run of a shell whose command was interrupted: the shell can be used again."""
    nothing = place(b"")
    bridge.cancel(session)
    bridge.done(session, call, INTERRUPTED, *nothing, *nothing)
    bridge.resume(session)


def inherited():
    """A function for more of the standard input that the guest has now."""
    stream = sys.stdin

    def more():
        try:
            reader = stream.buffer
            return (reader.read1 if hasattr(reader, "read1") else reader.read)(PIECE)
        except (AttributeError, ValueError, OSError):  # it is closed, or replaced by a text
            return b""

    return more


def place(data):
    """The address and the length of bytes."""
    return id(data) + BYTES_HEADER, len(data)


def encoded(value):
    return json.dumps(value).encode("utf-8", "surrogateescape")


def text():
    """What the shell has said with its last step."""
    data = bytes(bridge.text_size())
    bridge.text(*place(data))
    return data.decode("utf-8", "surrogateescape")


def flush():
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def output_of(script):
    """Runs a script, and returns its status and what it prints."""
    reading, writing = os.pipe()
    try:
        status = run(script, out=writing)
        return status, read_all(reading).decode(errors="replace")
    finally:
        os.close(reading)
        os.close(writing)


def read_all(fd):
    """What there is to read; of a pipe that is still open, what was written so far."""
    pieces = []
    with contextlib.suppress(BlockingIOError):
        while piece := os.read(fd, 1 << 20):
            pieces.append(piece)
    return b"".join(pieces)


def is_known(name):
    """Whether the shell has a command of this name."""
    return commands.find(name) is not None or run('command -v -- "$1" >/dev/null', [name]) == 0
