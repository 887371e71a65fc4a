"""A connection that threads share. Those that wait for the server read its messages in turns."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from threading import get_ident
from typing import TYPE_CHECKING, Any

from ._calls import Call, Tools
from ._connection import HELLO, Connection, audit_event, fatal
from ._interrupts import SIGNAL_SECONDS
from ._patience import Patience
from ._wire import SLICE, Message, encode
from .errors import BusyError, IsoletError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._interrupts import Guard

_FIRST = (0,)
_KILLED_SECONDS = 1.0
_SIGNAL_MILLISECONDS = 1000 * SIGNAL_SECONDS

_ATOMIC_BYTES = 4096
"""What a pipe takes as a whole, or not at all: `PIPE_BUF`."""


class Box:
    """What arrives for somebody who waits, or who may wait later."""

    __slots__ = ("busy", "context", "locks", "queue")

    def __init__(self) -> None:
        self.queue: deque[Any] = deque()
        """Messages and calls. Empty as long as there is nothing."""
        self.locks: list[threading.Lock] = []
        """What the threads that wait here have to be woken by."""
        self.busy = False
        """Whether the thread that waits here is elsewhere, such as in a tool."""
        self.context: Any = None
        """The context of that thread then."""


class Run(Box):
    """A run of code under way."""

    __slots__ = (
        "calls",
        "fault",
        "group",
        "is_nothing",
        "is_over",
        "number",
        "presses",
        "session",
        "tools",
    )

    def __init__(self, session: int, tools: Mapping[str, Any], group: Box | None = None) -> None:
        super().__init__()
        self.number = 0
        self.session = session
        self.tools = tools
        self.group = group
        """Who waits, if that is not the run itself."""
        self.calls: dict[int, Call] = {}
        """The calls that are not over."""
        self.is_over = False
        self.is_nothing = False
        """Whether there was no run to go on with."""
        self.presses = 0
        """How often Ctrl-C was pressed during the run."""
        self.fault: BaseException | None = None
        """What ends the run, and goes on to its caller: an exception that is no `Exception`."""


class Link(Connection):
    """A connection that threads share.

    One of those that wait reads, and passes on what is not its own: first to the thread that waits
    for it, and, when it has its own, the reading to one of the others.
    """

    def __init__(self, command: Sequence[str], env: Mapping[str, str] | None) -> None:
        super().__init__(command, env)
        self.tools = Tools(self)
        self._writing = threading.RLock()
        self._numbering = threading.RLock()
        self._reading = threading.Lock()
        self._arrival = select.poll()
        self._arrival.register(self.process.stdout, select.POLLIN)
        self._patience = Patience()
        # The thread that has locked it.
        self._reader_thread = 0
        self._last = HELLO
        self._waiting: dict[int, Box] = {HELLO: Box()}
        # What the threads that wait, and do not read, have to be woken by.
        self._parked: dict[threading.Lock, Box] = {}
        # What was read, and not passed on yet.
        self._messages: list[Message] = []
        self._audited: deque[tuple[Callable[[Any], object], Any]] = deque()
        # What goes with the next message.
        self._later: list[bytes] = encode(self.hello)
        # Frames that did not fit into the pipe, and how much of the first one was written.
        self._unsent: list[memoryview] = []
        self._sent: list[int] = []

    def number(self) -> int:
        with self._numbering:
            number = self._last = self._last + 1
            return number

    # Sending. Locks can be taken twice, because a finalizer of the program may run at any step of
    # the thread that holds them, and close a session.

    def send(self, message: Message) -> None:
        """Sends a message.

        Raises:
            IsoletError: the connection had ended before. If it ends now, nothing is raised: whoever
                waits for an answer learns of it.
        """
        if self.ended is not None:
            raise self.error()
        self.post(message)

    def post(self, message: Message) -> None:
        """Sends a message, unless the connection has ended.

        Raises:
            ProtocolError: it is too long.
        """
        frame = encode(message)
        with self._writing:
            if self._later or self.dropped:
                self._flush()
            self._write(*frame)

    def flush(self) -> None:
        """Sends what was to go with the next message."""
        with self._writing:
            self._flush()

    def send_later(self, message: Message) -> None:
        """Sends a message together with the next one."""
        self._later.extend(encode(message))

    def request(self, box: Box, operation: str, *arguments: Any, later: bool = False) -> int:
        """Sends a request whose answer goes to `box`. Returns its number."""
        number = self.number()
        self._waiting[number] = box
        try:
            send = self.send_later if later else self.send
            send([operation, number, *arguments])
        except BaseException:
            self._waiting.pop(number, None)
            raise
        return number

    def start(self, run: Run, operation: str, *arguments: Any) -> None:
        """Sends the request of a run."""
        number = self.number()
        self._waiting[number] = run
        try:
            self.send([operation, number, run.session, *arguments])
        except BaseException:
            self._waiting.pop(number, None)
            raise
        run.number = number

    def _flush(self) -> None:
        later, self._later = self._later, []
        frames = b"".join([*later, self.take_dropped()])
        if frames:
            self._write(frames)

    def _write(self, *pieces: bytes) -> None:
        """Writes the pieces of a frame, after what is left of another one."""
        try:
            if len(pieces) == 1 and len(pieces[0]) <= _ATOMIC_BYTES and not self._unsent:
                try:
                    os.write(self.process.stdin, pieces[0])
                    return
                except BlockingIOError:
                    pass
            self._unsent.extend(map(memoryview, pieces))
            self._write_rest()
        except OSError:
            # The server has gone. Those who wait for it will read that.
            self._unsent.clear()

    def _write_rest(self) -> None:
        fds = (self.process.stdin,)
        poll = select.poll()
        poll.register(fds[0], select.POLLOUT)
        try:
            while self._unsent:
                rest = self._unsent[0][sum(self._sent) :]
                if not rest:
                    self._unsent.pop(0)
                    self._sent.clear()
                    continue
                poll.poll()
                with contextlib.suppress(BlockingIOError):
                    # In one step for finalizers, as in `Reader.fill`.
                    self._sent.extend(map(os.write, fds, (rest[:SLICE],)))
        except OSError:
            raise
        except BaseException:
            # A signal handler of the program has raised. Half a message is the end of all.
            self.process.kill()
            raise

    # Waiting

    def wait(self, box: Box, guard: Guard | None = None) -> None:
        """Waits until there is something in `box`.

        Raises:
            IsoletError: the connection has ended.
            Pressed: Ctrl-C was pressed, if there is a guard. Nothing is lost.
        """
        queue = box.queue
        try:
            while not queue:
                if self._reading.acquire(False):
                    self._reader_thread = get_ident()
                    try:
                        while not queue and not self._audited:
                            if self.ended is not None:
                                raise self.error()
                            self._read(guard)
                    finally:
                        self._reader_thread = 0
                        self._reading.release()
                elif self._reader_thread == get_ident():
                    raise BusyError("a finalizer waits for the server while its thread reads")
                else:
                    self._follow(box, guard)
                if self._audited:
                    self._tell()
        finally:
            if self._parked:
                self._pass_on()

    def read_while(self, wanted: Callable[[], bool]) -> None:
        """Reads for others as long as nobody else does."""
        if not self._reading.acquire(False):
            return
        self._reader_thread = get_ident()
        try:
            while wanted() and self.ended is None and not self._audited:
                self._read(None)
        finally:
            self._stop_reading()
        if self._audited:
            self._tell()

    def _follow(self, box: Box, guard: Guard | None, seconds: float = -1) -> None:
        """Waits until there is something in `box`, or nobody reads."""
        lock = threading.Lock()
        lock.acquire()
        box.locks.append(lock)
        self._parked[lock] = box
        try:
            if box.queue or not self._reading.locked():
                return
            if guard is None:
                lock.acquire(timeout=seconds)
            else:
                guard.acquire(lock)
        finally:
            self._parked.pop(lock, None)
            with contextlib.suppress(ValueError):
                box.locks.remove(lock)

    def _pass_on(self) -> None:
        """Wakes somebody who can read, if nobody does."""
        if not self._reading.locked():
            try:
                lock, _ = self._parked.popitem()
            except KeyError:
                return
            lock.release()

    def _stop_reading(self) -> None:
        self._reader_thread = 0
        self._reading.release()
        self._pass_on()

    def _wake(self, box: Box) -> None:
        for lock in list(box.locks):
            if self._parked.pop(lock, None) is not None:
                lock.release()

    # Reading, by whoever has locked `_reading`

    def _read(self, guard: Guard | None) -> None:
        """Reads once, and passes on what was read."""
        messages = self._messages
        is_alone = not self._parked
        try:
            if not messages:
                if guard is None:
                    self._patience.wait(self._arrival.poll, None, is_alone=is_alone)
                    goes_on = self._reader.fill()
                else:
                    guard.arm()
                    try:
                        self._patience.wait(
                            self._arrival.poll, _SIGNAL_MILLISECONDS, is_alone=is_alone
                        )
                        goes_on = self._reader.fill()
                    finally:
                        guard.armed = False
                if not goes_on:
                    self._end(None)
                    return
                self._reader.take(messages)
            while messages:
                self._pass(messages[0])
        except (ProtocolError, OSError) as error:
            self._end(error if isinstance(error, IsoletError) else ProtocolError(str(error)))

    def _pass(self, message: Message) -> None:
        """Passes on the first message."""
        operation = message[0]
        if operation == "ok" or operation == "error":
            number = message[1]
            box = self._waiting.get(number)
            if number == HELLO:
                wrong = self.greet(message)
                if wrong is not None:
                    raise wrong
        elif operation == "output" or operation == "display":
            number = 0
            box = self._waiting.get(message[1])
        else:
            self._messages.pop(0)
            self._pass_event(operation, message)
            return
        if box is None:
            self._messages.pop(0)
            return
        if type(box) is Run and box.group is not None:
            box = box.group
        # In one step for signal handlers of the program.
        box.queue.extend(map(self._messages.pop, _FIRST))
        if number:
            self._waiting.pop(number, None)
        if self._parked:
            self._wake(box)

    def _pass_event(self, operation: str, message: Message) -> None:
        if operation == "call":
            _, number, _, run_number, name, arguments, call_id = message
            run = self._waiting.get(run_number)
            if type(run) is Run:
                box = run.group or run
                if self.tools.arrived(Call(number, run, name, arguments, call_id), box):
                    self._wake(box)
            else:
                self.post(["fail", number, "RuntimeError", "the run has ended"])
        elif operation == "uncall":
            self.tools.uncalled(message[1])
        elif operation == "audit":
            callback = self.audits.get(message[1])
            if callback is not None:
                self._audited.append((callback, audit_event(message)))
        elif operation == "fatal":
            raise fatal(message)
        else:
            raise ProtocolError(f"the server wrote `{operation}`, which this client does not know")

    def _end(self, error: IsoletError | None) -> None:
        """Ends the connection: nothing will be read any more."""
        if error is not None:
            # Another thread may be writing to it, and it may not read.
            self.process.kill()
        with self._writing:
            self.process.close_input()
            self.set_ended(error)
            self.process.close_output()
        for lock in list(self._parked):
            if self._parked.pop(lock, None) is not None:
                lock.release()

    def _tell(self) -> None:
        """Tells the program of accesses. Not while this thread reads: it may run further code."""
        while self._audited:
            callback, event = self._audited.popleft()
            try:
                callback(event)
            except Exception:
                import logging

                logging.getLogger("isolet").exception("`on_audit` failed")

    # The end

    def has_died(self) -> bool:
        """Returns whether the server has ended, also if nobody has waited for it since."""
        if self.ended is None and self.process.has_ended() and self._reading.acquire(False):
            self._reader_thread = get_ident()
            try:
                while self.ended is None:
                    self._read(None)
            finally:
                self._stop_reading()
        return self.ended is not None

    def close(self, seconds: float) -> None:
        if not self._writing.acquire(timeout=seconds):
            # Somebody writes, and the server does not read.
            self.process.kill()
            self._writing.acquire()
        try:
            self.set_closed()
            self.process.close_input()
        finally:
            self._writing.release()
        box = Box()
        deadline = time.monotonic() + seconds
        is_killed = False
        while self.process.stdout >= 0:
            rest = deadline - time.monotonic()
            if rest <= 0 and is_killed:
                # Another process has got the pipe, and keeps it open.
                return
            if rest <= 0:
                self.process.kill()
                is_killed, rest = True, _KILLED_SECONDS
                deadline += rest
            if self._reading.acquire(False):
                self._reader_thread = get_ident()
                try:
                    self._read_until_end(rest)
                finally:
                    self._stop_reading()
            elif self._reader_thread == get_ident():
                # A finalizer closes what its own thread reads from.
                return
            else:
                self._follow(box, None, rest)

    def _read_until_end(self, seconds: float) -> None:
        """Reads what the server still writes, for at most this time."""
        if self.process.stdout < 0:
            return
        poll = select.poll()
        poll.register(self.process.stdout, select.POLLIN)
        if poll.poll(seconds * 1000):
            self._read(None)
