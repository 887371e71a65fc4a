"""A connection of one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextvars import Context
from typing import Any

from .._calls import failure
from .._connection import HELLO, Connection, audit_event, fatal
from .._wire import SLICE, Message, encode
from ..errors import IsoletError, ProtocolError, from_wire
from ..tools import Tool, current_call

_FIRST = (0,)
_CLOSING_SECONDS = 2.0
_HIGH_BYTES = 1 << 20
"""How many bytes may wait for the pipe until those who send wait too."""


class Run:
    """A run of code under way."""

    __slots__ = (
        "calls",
        "context",
        "fault",
        "is_nothing",
        "is_over",
        "number",
        "queue",
        "session",
        "tools",
        "waiter",
    )

    def __init__(self, session: int, tools: Mapping[str, Tool], context: Context | None) -> None:
        self.number = 0
        self.session = session
        self.tools = tools
        self.context = context
        """The context of the task that runs the code."""
        self.queue: deque[Message] = deque()
        self.waiter: asyncio.Future[None] | None = None
        self.calls: dict[int, Call] = {}
        """The calls that are not over."""
        self.is_over = False
        self.is_nothing = False
        """Whether there was no run to go on with."""
        self.fault: BaseException | None = None
        """What ends the run, and goes on to its caller: an exception that is no `Exception`."""

    def put(self, message: Message) -> None:
        """Adds a message. An empty one stands for the end of the connection."""
        self.queue.append(message)
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    async def get(self) -> Message:
        """Waits for the next message."""
        while not self.queue:
            self.waiter = asyncio.get_running_loop().create_future()
            await self.waiter
        return self.queue.popleft()


class Call:
    """A call of a tool that is not over."""

    __slots__ = ("arguments", "id", "is_over", "number", "run", "task", "tool")

    def __init__(
        self, number: int, run: Run, tool: Tool, arguments: dict[str, Any], call_id: int
    ) -> None:
        self.number = number
        self.id = call_id
        """Its number in the session, for the tool."""
        self.run = run
        self.tool = tool
        self.arguments = arguments
        self.is_over = False
        """Whether the guest no longer waits for an answer."""
        self.task: asyncio.Task[None] | None = None


class Link(Connection):
    """A connection. All of its methods belong to the loop that has made it."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str] | None) -> None:
        super().__init__(command, env)
        self._last = HELLO
        self._waiting: dict[int, asyncio.Future[Any] | Run] = {}
        self._calls: dict[int, Call] = {}
        self._messages: list[Message] = []
        self._later: list[bytes] = encode(self.hello)
        # What did not fit into the pipe.
        self._unsent: deque[memoryview] = deque()
        self._unsent_bytes = 0
        self._drained: list[asyncio.Future[None]] = []
        self._closed: list[asyncio.Future[None]] = []
        os.set_blocking(self.process.stdout, False)
        # The loop refers to this object, and not the other way round, so that a loop that nobody
        # has any more takes the connection with it.
        asyncio.get_running_loop().add_reader(self.process.stdout, self._read)
        # `asyncio.run` closes what the loop knows of as its asynchronous generators.
        self._keeper = self._keep()
        with contextlib.suppress(StopIteration):
            self._keeper.__anext__().send(None)

    def number(self) -> int:
        self._last += 1
        return self._last

    # Sending

    def post(self, message: Message) -> None:
        """Sends a message, unless the connection has ended.

        Raises:
            ProtocolError: it is too long.
        """
        frame = encode(message)
        if self._later or self.dropped:
            self.flush()
        for piece in frame:
            self._write(piece)

    def flush(self) -> None:
        """Sends what was to go with the next message."""
        later, self._later = self._later, []
        frames = b"".join([*later, self.take_dropped()])
        if frames:
            self._write(frames)

    def request(self, operation: str, *arguments: Any, later: bool = False) -> asyncio.Future[Any]:
        """Sends a request. Returns a future of its answer's value.

        Raises:
            IsoletError: the connection has ended.
        """
        if self.ended is not None:
            raise self.error()
        number = self.number()
        message = [operation, number, *arguments]
        if later:
            self._later.extend(encode(message))
        else:
            self.post(message)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        return future

    def start(self, run: Run, operation: str, *arguments: Any) -> None:
        """Sends the request of a run.

        Raises:
            IsoletError: the connection has ended.
        """
        if self.ended is not None:
            raise self.error()
        number = self.number()
        self.post([operation, number, run.session, *arguments])
        run.number = number
        self._waiting[number] = run

    async def drain(self) -> None:
        """Waits while too much waits for the pipe."""
        while self._unsent_bytes > _HIGH_BYTES:
            drained: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._drained.append(drained)
            await drained

    def _write(self, piece: bytes) -> None:
        rest = memoryview(piece)
        if not self._unsent:
            try:
                while rest:
                    rest = rest[os.write(self.process.stdin, rest[:SLICE]) :]
                return
            except BlockingIOError:
                pass
            except OSError:
                # The server has gone. The reader will tell those who wait.
                return
            asyncio.get_running_loop().add_writer(self.process.stdin, self._write_rest)
        self._unsent.append(rest)
        self._unsent_bytes += len(rest)

    def _write_rest(self) -> None:
        try:
            while self._unsent:
                rest = self._unsent[0]
                sent = os.write(self.process.stdin, rest[:SLICE])
                self._unsent_bytes -= sent
                if sent < len(rest):
                    self._unsent[0] = rest[sent:]
                else:
                    self._unsent.popleft()
        except BlockingIOError:
            return self._tell_drained()
        except OSError:
            self._unsent.clear()
            self._unsent_bytes = 0
        self._stop_writing()
        return self._tell_drained()

    def _stop_writing(self) -> None:
        if self.process.stdin >= 0:
            asyncio.get_running_loop().remove_writer(self.process.stdin)

    def _tell_drained(self) -> None:
        if self._unsent_bytes <= _HIGH_BYTES:
            drained, self._drained = self._drained, []
            _resolve(drained)

    # Reading

    def _read(self) -> None:
        """Reads once, and passes on what was read. The loop calls it when there is something."""
        try:
            goes_on = self._reader.fill()
            self._reader.take(self._messages)
            while self._messages:
                # In one step for signal handlers of the program.
                self._pass(self._messages.pop(0))
        except BlockingIOError:
            return
        except (ProtocolError, OSError) as error:
            self._end(error if isinstance(error, IsoletError) else ProtocolError(str(error)))
            return
        if not goes_on:
            self._end(None)

    def _pass(self, message: Message) -> None:
        operation = message[0]
        if operation == "ok" or operation == "error":
            number = message[1]
            waiting = self._waiting.pop(number, None)
            if number == HELLO:
                wrong = self.greet(message)
                if wrong is not None:
                    raise wrong
            elif isinstance(waiting, Run):
                waiting.put(message)
            elif waiting is not None and not waiting.done():
                _answer(waiting, message)
        elif operation == "output" or operation == "display":
            run = self._waiting.get(message[1])
            if isinstance(run, Run):
                run.put(message)
        elif operation == "call":
            self._call(message)
        elif operation == "uncall":
            call = self._calls.get(message[1])
            if call is not None:
                self._cancel(call)
        elif operation == "audit":
            callback = self.audits.get(message[1])
            if callback is not None:
                asyncio.get_running_loop().call_soon(callback, audit_event(message))
        elif operation == "fatal":
            raise fatal(message)
        else:
            raise ProtocolError(f"the server wrote `{operation}`, which this client does not know")

    # Tools

    def _call(self, message: Message) -> None:
        _, number, _, run_number, name, arguments, call_id = message
        run = self._waiting.get(run_number)
        if not isinstance(run, Run) or run.context is None or name not in run.tools:
            self.post(["fail", number, "RuntimeError", f"the tool `{name}` is gone"])
            return
        call = Call(number, run, run.tools[name], arguments, call_id)
        run.calls[number] = self._calls[number] = call
        # The task copies the context in which it is made.
        call.task = run.context.run(asyncio.ensure_future, self._serve(call))

    async def _serve(self, call: Call) -> None:
        """Calls the function, and answers."""
        # The context is that of this task alone.
        current_call.set(call.id)
        fault = None
        try:
            if call.tool.is_coroutine:
                value = await call.tool.call(call.arguments)
            else:
                # An exception such as `StopIteration` cannot pass through a future.
                value, error = await asyncio.to_thread(_outcome, call)
                if error is not None:
                    raise error
                if inspect.iscoroutine(value):
                    value = await value
            message = ["answer", call.number, call.tool.result(value)]
        except Exception as error:
            message = failure(call.number, error)
        except BaseException as error:
            message = failure(call.number, error)
            fault = None if call.is_over else error
        self._calls.pop(call.number, None)
        call.run.calls.pop(call.number, None)
        if fault is not None and call.run.fault is None:
            call.run.fault = fault
        try:
            self.post(message)
        except IsoletError as error:
            self.post(failure(call.number, error))
        if fault is not None:
            self.post(["cancel", self.number(), call.run.session])

    def _cancel(self, call: Call) -> None:
        # Once: what it does then is not to be interrupted again.
        if call.task is not None and not call.is_over:
            call.task.cancel()
        call.is_over = True

    async def end_calls(self, run: Run) -> None:
        """Cancels the calls of a run that has ended, and waits for their end."""
        calls = list(run.calls.values())
        for call in calls:
            self._cancel(call)
        tasks = [call.task for call in calls if call.task is not None]
        if tasks:
            await asyncio.wait(tasks)

    # The end

    def _end(self, error: IsoletError | None) -> None:
        """Ends the connection: nothing will be read any more."""
        if self.process.stdout < 0:
            return
        if error is not None:
            self.process.kill()
        loop = asyncio.get_running_loop()
        loop.remove_reader(self.process.stdout)
        if self._unsent:
            self._stop_writing()
        self._unsent.clear()
        self._unsent_bytes = 0
        self.process.close_input()
        self.set_ended(error)
        self.process.close_output()
        waiting, self._waiting = self._waiting, {}
        for each in waiting.values():
            if isinstance(each, Run):
                each.put([])
            elif not each.done():
                each.set_exception(self.error())
                # Nobody may be waiting for it.
                each.exception()
        self._tell_drained()
        closed, self._closed = self._closed, []
        _resolve(closed)

    def close(self, seconds: float) -> None:
        # At the end of the program no loop may be running.
        self.set_closed()
        self.process.close_input()
        self.process.end(seconds)

    async def aclose(self) -> None:
        """Ends the server and waits for that. Kills it if it goes on."""
        self.set_closed()
        if self.process.stdout < 0:
            return
        if self._unsent:
            self._stop_writing()
        self.process.close_input()
        closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._closed.append(closed)
        await asyncio.wait([closed], timeout=_CLOSING_SECONDS)
        if not closed.done():
            self.process.kill()
            self._end(None)

    async def _keep(self) -> AsyncGenerator[None, None]:
        """Closes the connection when the loop closes its asynchronous generators."""
        try:
            yield
        finally:
            await self.aclose()


def _answer(future: asyncio.Future[Any], message: Message) -> None:
    if message[0] == "ok":
        future.set_result(message[2])
        return
    future.set_exception(from_wire(message[2]))
    # Nobody may be waiting for it: it is one that explains later failures.
    future.exception()


def _resolve(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)


def _outcome(call: Call) -> tuple[Any, BaseException | None]:
    try:
        return call.tool.call(call.arguments), None
    except BaseException as error:
        return None, error
