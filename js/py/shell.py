"""Runs commands of a shell, of which none is a process.

The shell is a WebAssembly module beside the interpreter (`js/shell.js`). It goes on step by step:
commands that are ours are carried out here, between two steps.
"""

import _thread
import contextlib
import errno
import io
import json
import math
import os
import sys
import threading
import time
import types

import _isolet_shell_commands as commands
from _isolet_frames import BYTES_HEADER

FAILED, FINISHED, CALL, WAIT, LOST, INPUT, PIECE = range(7)  # what a step asks for

CALLS = (
    *("begin", "end", "run", "resume", "cancel", "state", "done", "more", "output", "pull"),
    *("next_wake", "text_size", "text", "input_size", "input"),
)
MOST = 1 << 18  # bytes of input at a time
BROKEN, STOPPED = 1, 2  # why a command may not go on writing
INTERRUPTED = 130  # the status of what an interrupt has ended
BETWEEN_LOOKS = 0.05  # seconds that a command computes before the shell goes on
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
        call = Call(session, found["id"], control, stdin)
        try:
            status = commands.carry_out(found, call, call.input(found))
        except BaseException:
            give_up(session, call.id)
            raise
        bridge.done(session, call.id, status)
    return not control.is_killed and not is_late(control)


class Call:
    """A command that is carried out here: what it reads and writes."""

    def __init__(self, session, number, control, stdin):
        self.session, self.id, self.control, self.stdin = session, number, control, stdin

    def input(self, found):
        """Its standard input: what came with it, and then what comes while it runs."""
        begun = received()
        if found["live"]:
            return commands.Input(begun, self.stdin)
        return commands.Input(begun, self.pull) if found["more"] else io.BytesIO(begun)

    def pull(self):
        """More of the pipe that it reads, for which the commands that write to it go on."""
        while (step := bridge.pull(self.session, self.id)) != PIECE:
            if not take_step(self.session, step, self.control, self.stdin):
                bridge.cancel(self.session)
        return received()

    def write(self, descriptor, data):
        """Writes to one of its streams, 1 or 2."""
        written = bridge.output(self.session, self.id, descriptor, *place(data))
        if written == STOPPED or self.control.is_killed or is_late(self.control):
            raise commands.Stopped(self)
        if written == BROKEN and descriptor == 1:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    def look(self):
        """Lets the shell go on beside the command, which ends if the shell has stopped it."""
        self.write(2, b"")
        return self.next_look()

    def next_look(self):
        """When the shell has something to do, such as to end a command after `timeout`."""
        if threading.current_thread() is not threading.main_thread():
            return math.inf  # no signal arrives in another
        wake = bridge.next_wake(self.session)
        now = time.monotonic()
        moment = now + max(wake / 1e6 - time.time(), BETWEEN_LOOKS) if wake >= 0 else math.inf
        return min(moment, self.control.deadline)


def received():
    """The bytes that came with the last step."""
    data = bytes(bridge.input_size())
    bridge.input(*place(data))
    return data


def give_up(session, call):
    """Ends the run of a shell whose command was interrupted: the shell can be used again."""
    bridge.cancel(session)
    bridge.done(session, call, INTERRUPTED)
    bridge.resume(session)


def inherited():
    """A function for more of the standard input that the guest has now."""
    stream = sys.stdin

    def more():
        try:
            reader = stream.buffer
            return (reader.read1 if hasattr(reader, "read1") else reader.read)(MOST)
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
