"""A session on a node, `isolet.node.Session`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from . import _session
from ._handle import Handle
from ._http import Node, body, checked, error_of, events, read, refusal, waits
from ._json import decode
from ._keywords import shows
from ._node_files import Files
from ._remote_calls import Calls, counts
from ._values import text, to_plain, variables
from .errors import (
    ConfigError,
    Interrupted,
    ServerDiedError,
    SessionClosedError,
    StartError,
    TransferError,
)
from .execution import Display, Execution, Output, Variable, display_from_wire
from .options import (
    DEFAULTS,
    Inputs,
    RunOptions,
    StreamOptions,
    has_callbacks,
    of_run,
    of_stream,
    tell,
)

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from .tools import Tool

AGAIN = 503
"""The status of a node that ends, or that was started again and restores the session."""
_ANSWER_SECONDS = 600.0
"""For how long the answer to a call waits for a node that restores the session."""
_EVENTS = "application/x-ndjson"


class Session(Handle):
    """A session on a node, which keeps its variables from run to run. `Client.session` opens it.

    It can be used by any thread, but runs one code at a time. If it is dropped without `close`, the
    node ends it when nobody has used it for the node's time `idle`.
    """

    id: str
    """Its id, which names its node."""
    address: str
    """The address of its node."""
    token: str | None
    """Its token, with which other clients may use it; `None` if it was attached to."""
    last_run: int | None
    """The number of the last run of a durable session, as far as this object knows."""

    def __init__(
        self,
        node: Node,
        made: dict[str, Any],
        tools: Mapping[str, Tool],
        headers: dict[str, str] | None = None,
    ) -> None:
        """Use `Client.session`."""
        self._node = node
        self._tools = tools
        self.id = made["id"]
        self.address = node.address
        self._path = f"/v1/sessions/{self.id}"
        self.token = made.get("token")
        self._headers = headers or {"Authorization": f"Bearer {self.token}"}
        self._is_durable = made.get("durable", False)
        self._seen = (0, 0, 0)
        self._waiting: set[int] = set()
        self.last_run = None

    def __repr__(self) -> str:
        return f"<isolet.node.Session {self.id!r} on {self.address}>"

    @shows(RunOptions, **DEFAULTS)
    def run(self, code: str, **options: Unpack[RunOptions]) -> Execution:
        """Runs code, and returns what it did: as `isolet.Session.run`, in its turn on the node.

        Tools run in threads of this program. Ctrl-C interrupts the guest and raises `Interrupted`;
        if the guest does not stop within the limit `grace`, the session ends.

        Raises:
            TransferError: an input cannot cross.
            BusyError: the session runs code already.
            SessionClosedError: the session has ended. A new one helps.
            LimitError: the code is too long, or the run has waited too long for its turn.
            ServerDiedError: the node has ended, and the session with it, or cannot be reached.
            IsoletError: the node failed in another way.
            BaseException: a callback has raised it, or a tool, unless it is an `Exception`: those
                go to the guest.
        """
        job = job_of(code, options.get("inputs"), of_run(options))
        try:
            if not (self._tools or has_callbacks(options)):
                return Execution(decode(self._ask("POST", "/runs", body(job))))
            with contextlib.closing(self._events(*self._begin(job))) as events:
                for item in events:
                    if isinstance(item, Execution):
                        return item
                    tell(item, options)
        except KeyboardInterrupt:
            raise Interrupted from None
        raise AssertionError("the last event is the execution")

    @shows(RunOptions, **DEFAULTS)
    def sh(self, script: str, **options: Unpack[RunOptions]) -> Execution:
        """Runs a script in the session's shell, and returns what it did: as `isolet.Session.sh`.

        Args:
            script: one or several commands.
            **options: those of `run`.

        Raises:
            IsoletError: what `run` raises.
        """
        options["syntax"] = "shell"
        return self.run(script, **options)

    @shows(RunOptions, **DEFAULTS)
    def eval(self, code: str, **options: Unpack[RunOptions]) -> Any:
        """Runs code and returns its value, or raises why there is none.

        Args:
            code: Python.
            **options: those of `run`.

        Raises:
            GuestError: the code failed. `GuestTimeoutError`: it did not end in time.
            TransferError: the value cannot cross.
            IsoletError: what `run` raises.
        """
        execution = self.run(code, **options).raise_for_error()
        if execution.value_error is not None:
            raise TransferError(execution.value_error)
        return execution.value

    @shows(StreamOptions, **DEFAULTS)
    def stream(
        self, code: str, **options: Unpack[StreamOptions]
    ) -> Generator[Output | Display | Execution, None, None]:
        """Runs code, and yields what it writes and displays as it comes; last, the `Execution`.

        Takes the arguments of `run`, without callbacks: as `isolet.Session.run`. A guest that
        writes faster than its output is taken has to wait. If the generator is closed or dropped
        early, the run is interrupted.

        Raises:
            TransferError, BusyError, SessionClosedError, IsoletError: as with `run`.
        """
        job = job_of(code, options.get("inputs"), of_stream(options))
        return self._events(*self._begin(job))

    @property
    def cursor(self) -> str:
        """What was told of the last run of a durable session: where `reattach` goes on.

        Calls of tools that are not answered yet are told again.
        """
        output, displays, call = self._seen
        return f"{output}-{displays}-{min([call + 1, *self._waiting]) - 1}"

    def reattach(
        self, run: int | None = None, cursor: str | None = None, *, wait: float = 0
    ) -> Generator[Output | Display | Execution, None, None]:
        """Yields what the last run of a durable session does, as `stream`, and serves its calls.

        The run goes on when its client goes, and when its node is killed and started again.

        Args:
            run: its number, `last_run`.
            cursor: that of the session object which has read its events, for those after it; by
                default, this object's.
            wait: for how many seconds to wait while the node cannot be reached or restores the
                session.

        Raises:
            SessionClosedError: the session has ended, or keeps no run of this number.
            ServerDiedError: the node cannot be reached.
        """
        run = self.last_run if run is None else run
        if run is None:
            raise ConfigError("`run` is missing: this object has begun no run")
        if cursor is not None:
            self._seen = counts(cursor)
        elif run != self.last_run:
            self._seen = (0, 0, 0)
        path = f"{self._path}/runs/{run}?after={self.cursor if cursor is None else cursor}"
        self._waiting, deadline = set(), time.monotonic() + wait
        while True:
            try:
                begun = self._listen("GET", path, None)
                break
            except (ServerDiedError, StartError):
                if not waits(deadline):
                    raise
        return self._events(*begun)

    def get(self, name: str, default: Any = None) -> Any:
        """Returns a variable as plain data. Works while code waits, as for a tool.

        Args:
            name: the name of a variable.
            default: what is returned if there is none.

        Raises:
            TransferError: the value cannot cross.
        """
        found = self._find("GET", _variable(name))
        return default if found is None else decode(found)["value"]

    def set(self, values: Inputs) -> None:
        """Sets variables, one after the other.

        Args:
            values: the values by name, which cross as plain data.

        Raises:
            TransferError: one cannot cross, or a name is no identifier of Python.
            BusyError: code runs.
        """
        for name, value in variables(values, "values").items():
            self._ask("PUT", _variable(name), body({"value": value}))

    def delete(self, name: str) -> bool:
        """Deletes the variable `name`. Returns whether there was one."""
        return self._find("DELETE", _variable(name)) is not None

    def variables(self) -> list[Variable]:
        """Returns the variables of the guest, each with its type and `repr`."""
        return _session.variable_list(decode(self._ask("GET", "/variables"))["variables"])

    def __getitem__(self, name: str) -> Any:
        found = self._find("GET", _variable(name))
        if found is None:
            raise KeyError(name)
        return decode(found)["value"]

    def __setitem__(self, name: str, value: Any) -> None:
        self._ask("PUT", _variable(name), body({"value": to_plain(value, name)}))

    def __delitem__(self, name: str) -> None:
        if not self.delete(name):
            raise KeyError(name)

    @property
    def files(self) -> Files:
        """The files that the guest sees."""
        return Files(self._ask, self._find)

    def interrupt(self) -> None:
        """Raises `KeyboardInterrupt` in the code that runs, if any does. For other threads."""
        self._ask("POST", "/interrupt")

    def reset(self) -> None:
        """Starts a fresh interpreter under the same policy, without variables and files.

        Raises:
            SessionClosedError: the session has ended.
            BusyError: code runs.
        """
        self._ask("POST", "/reset")

    def renew(self, ttl: float | None = None) -> None:
        """Lets the session live so long from now on.

        Args:
            ttl: seconds; by default, and at most, the node's `ttl`.
        """
        self._ask("POST", "/renew", body({} if ttl is None else {"ttl": float(ttl)}))

    def close(self) -> None:
        """Ends the session for good, and a run in it. Does nothing if it has ended."""
        with contextlib.suppress(SessionClosedError, ServerDiedError):
            self._ask("DELETE", "")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, method: str, path: str, sent: bytes | None = None) -> bytes:
        return checked(*self._answer(method, path, sent))

    def _answer(self, method: str, path: str, sent: bytes | None) -> tuple[int, bytes]:
        connection = self._node.connection()
        return self._node.ask(connection, method, self._path + path, self._headers, sent)

    def _answer_call(self, method: str, path: str, sent: bytes) -> bytes:
        """Answers a call, also of a node that is being restored."""
        deadline = time.monotonic() + _ANSWER_SECONDS
        while True:
            status, data = self._answer(method, path, sent)
            if status != AGAIN or not waits(deadline):
                break
        if status < 300 or status == 404:
            number = path.rpartition("/")[2]
            if number.isdecimal():
                self._waiting.discard(int(number))
        return checked(status, data)

    def _find(self, method: str, path: str) -> bytes | None:
        """Asks for a variable or a file. Returns `None` if there is none."""
        status, data = self._answer(method, path, None)
        if status == 404:
            # Raises if it is the session that there is not.
            self._ask("GET", "")
            return None
        return checked(status, data)

    def _begin(self, job: dict[str, Any]) -> tuple[HTTPConnection, HTTPResponse]:
        """Starts a run whose events are told."""
        self._seen, self._waiting = (0, 0, 0), set()
        return self._listen("POST", f"{self._path}/runs", body(job))

    def _listen(
        self, method: str, path: str, sent: bytes | None
    ) -> tuple[HTTPConnection, HTTPResponse]:
        """Asks for the events of a run."""
        node = self._node
        headers = {**self._headers, "Accept": _EVENTS}
        connection = node.connection()
        with node.guarding(connection):
            response = node.send(connection, method, path, headers, sent)
            if response.status == 200:
                number = response.headers.get("Isolet-Run")
                self.last_run = None if number is None else int(number)
                return connection, response
            data = read(response)
        node.keep(connection)
        raise refusal(response.status, data)

    def _events(
        self, connection: HTTPConnection, response: HTTPResponse
    ) -> Generator[Output | Display | Execution, None, None]:
        """Yields what a run tells. Serves its calls of tools."""
        calls = Calls(self._tools, self._answer_call if self._is_durable else self._ask)
        try:
            with self._node.guarding(connection):
                for event in events(response):
                    kind = event["type"]
                    if "cursor" in event:
                        self._seen = counts(event["cursor"])
                    if kind == "tool_call":
                        self._waiting.add(event["call_id"])
                        calls.start(event["call_id"], event["name"], event["arguments"])
                    elif kind == "dropped":
                        pass
                    elif kind == "tool_cancelled":
                        self._waiting.discard(event["call_id"])
                        calls.cancel(event["call_id"])
                    elif kind == "display":
                        yield display_from_wire(event["display"])
                    elif kind in ("stdout", "stderr"):
                        yield Output(kind, event["text"])
                    else:
                        last = event
                        break
                else:
                    raise HTTPException("the answer has no end")
                # What is after the last line is the end of the body.
                read(response)
        finally:
            calls.cancel_all()
        self._node.keep(connection)
        if calls.fault is not None:
            raise calls.fault
        if last["type"] == "error":
            raise error_of(last["problem"])
        yield Execution(last["execution"])


def job_of(code: str, inputs: Inputs | None, wire: dict[str, Any]) -> dict[str, Any]:
    """Returns a run as `docs/reference/http-api.md` describes it."""
    job = dict(wire)
    job["code"] = text(code, "code")
    if inputs:
        job["inputs"] = variables(inputs)
    return job


def _variable(name: str) -> str:
    return f"/variables/{quote(text(name, 'name'), safe='')}"
