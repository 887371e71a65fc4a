"""Sessions on nodes, `isolet serve --listen`, over HTTP: `Client`, `Session`.

>>> client = isolet.node.Client("http://10.0.0.5:8080", key=KEY)
>>> with client.session(tools=[search]) as session:
...     print(session.run("search('cats')").value)
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from . import _session
from ._handle import Handle
from ._http import Node, body, checked, error_of, events, read, refusal, waits
from ._json import decode
from ._node_files import Files
from ._remote_calls import Calls, counts
from ._values import text, to_plain, variables
from .errors import (
    ConfigError,
    Interrupted,
    IsoletError,
    ServerDiedError,
    SessionClosedError,
    StartError,
    TransferError,
)
from .execution import Display, Execution, Output, Variable, display_from_wire
from .options import Inputs, RunOptions, StreamOptions, has_callbacks, of_run, of_stream, tell
from .policy import Compiled, Policy

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from .tools import Tool

__all__ = ["Client", "Files", "Session"]

_ELSEWHERE = (429, 503)
"""The statuses by which a node says that it has no room for a session."""
_AGAIN = 503
"""The status of a node that ends, or that was started again and restores the session."""
_ANSWER_SECONDS = 600.0
"""For how long the answer to a call waits for a node that restores the session."""
_EVENTS = "application/x-ndjson"


class Client:
    """Opens sessions on one node or several. Any thread may use it, and it can be pickled.

    Args:
        addresses: where the nodes listen, the nearest first: `http://HOST:PORT`, `https://HOST`,
            `unix:PATH`. A session goes to the first node that has room.
        key: the key, if the nodes have tenants.
        spread: whether sessions go to all nodes in turn instead.

    Raises:
        ConfigError: an address is none.
    """

    def __init__(
        self, addresses: str | Iterable[str], key: str | None = None, *, spread: bool = False
    ) -> None:
        self._spread = spread
        self._turn = itertools.count()
        self._nodes: list[Node] = []
        self._use([addresses] if isinstance(addresses, str) else addresses, key)

    def __reduce__(self) -> tuple[Any, ...]:
        return _client, ([node.address for node in self._nodes], self._key, self._spread)

    def session(
        self,
        *,
        inputs: Inputs | None = None,
        ttl: float | None = None,
        wait: float = 0,
        durable: bool = False,
        **policy: Unpack[Policy],
    ) -> Session:
        """Opens a session.

        Args:
            inputs: variables by name. They cross as plain data.
            ttl: the most seconds that it lives; by default, and at most, the node's `ttl`.
            wait: for how many seconds to wait for room while all nodes are full.
            durable: whether the node goes on with it, and with its run, when it is started again
                after its end. See `attach`.
            **policy: what guests may do, as for `isolet.Sandbox`, within what the nodes allow.

        Raises:
            LimitError: all nodes are full, or have as many sessions of the key as it may have.
            ServerDiedError: no node can be reached.
            StartError: the nodes end, or could not start it.
            ConfigError: the policy is invalid, or allows more than the nodes do.
            TransferError: an input cannot cross.
        """
        compiled = Compiled(policy)
        wanted: dict[str, Any] = {"policy": compiled.wire}
        if inputs:
            wanted["inputs"] = variables(inputs)
        if ttl is not None:
            wanted["ttl"] = float(ttl)
        if durable:
            wanted["durable"] = True
        node, answer = self._anywhere("/v1/sessions", wanted, wait, is_repeatable=True)
        return Session(node, decode(answer), compiled.tools)

    def attach(
        self,
        id: str,  # noqa: A002 - it is that of `Session`
        *,
        token: str | None = None,
        wait: float = 0,
        tools: Iterable[Callable[..., Any] | Tool] = (),
    ) -> Session:
        """Returns a session that is open already, such as a durable one of another process.

        Args:
            id: its `id`.
            token: its `token`; by default, the client's key.
            wait: for how many seconds to wait while its node cannot be reached or restores it.
            tools: the tools of its policy, which serve calls from here on.

        Raises:
            SessionClosedError: there is no such session, or it has ended.
            ServerDiedError: no node can be reached.
        """
        compiled = Compiled({"tools": tools})
        headers = dict(self._headers)
        if token is not None:
            headers = {"Authorization": f"Bearer {token}"}
        path, deadline = f"/v1/sessions/{quote(text(id, 'id'), safe='')}", time.monotonic() + wait
        while True:
            failed: IsoletError | None = None
            for node in self._order():
                try:
                    status, data = node.ask(node.connection(), "GET", path, headers)
                except ServerDiedError as error:
                    failed = error
                    continue
                if status < 300:
                    return Session(node, decode(data), compiled.tools, headers)
                found = refusal(status, data)
                # That of the node that may have it yet says more than that there is none.
                failed = found if failed is None or status == _AGAIN else failed
                if status not in (404, _AGAIN):
                    raise found
            if not waits(deadline):
                raise failed or StartError("there is no node", "start one, or wait")

    def run(
        self,
        code: str,
        *,
        inputs: Inputs | None = None,
        timeout: float | None = None,
        wait: float = 0,
        **policy: Unpack[Policy],
    ) -> Execution:
        """Runs code in a fresh session, which ends with it.

        Args:
            code: Python. The value of its last expression is the result's `value`.
            inputs: variables by name. They cross as plain data.
            timeout: the most seconds that the run may take, at most the limit `run_time`.
            wait: for how many seconds to wait for room while all nodes are full.
            **policy: as for `session`.

        Raises:
            IsoletError: what `session` and `Session.run` raise.
        """
        if policy.get("tools"):
            with self.session(wait=wait, **policy) as session:
                return session.run(code, inputs=inputs, timeout=timeout)
        job = _job(code, inputs, of_run({"timeout": timeout}))
        job["policy"] = Compiled(policy).wire
        return Execution(decode(self._anywhere("/v1/run", job, wait, is_repeatable=False)[1]))

    def start_run(
        self,
        code: str,
        *,
        inputs: Inputs | None = None,
        timeout: float | None = None,
        wait: float = 0,
        **policy: Unpack[Policy],
    ) -> Session:
        """Starts a durable run in a session of its own, and returns that session.

        `Session.reattach` yields what the run does and serves its calls, also of a client that has
        attached to the session later. The session ends with the run, whose result stays until the
        node's `ttl` is over or the session is closed.

        Args:
            code: Python. The value of its last expression is the result's `value`.
            inputs: variables by name. They cross as plain data.
            timeout: the most seconds that the run may take, at most the limit `run_time`.
            wait: for how many seconds to wait for room while all nodes are full.
            **policy: as for `session`.

        Raises:
            IsoletError: what `session` and `Session.run` raise.
        """
        compiled = Compiled(policy)
        job = _job(code, inputs, of_run({"timeout": timeout}))
        job |= {"policy": compiled.wire, "durable": True}
        node, answer = self._anywhere("/v1/run", job, wait, is_repeatable=False)
        begun = decode(answer)
        made = {"id": begun["session"], "token": begun["token"], "durable": True}
        session = Session(node, made, compiled.tools)
        session.last_run = begun["run"]
        return session

    def close(self) -> None:
        """Closes connections that are idle. Sessions stay, and the client can be used again."""
        for node in self._nodes:
            node.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _use(self, addresses: Iterable[str], key: str | None) -> bool:
        """Uses these nodes from now on. Returns whether there are others among them."""
        known = {node.address: node for node in self._nodes}
        nodes = [known.get(address) or Node(address) for address in addresses]
        self._key = key
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._nodes = nodes
        return any(node.address not in known for node in nodes)

    def _look(self) -> bool:
        """Looks for nodes anew. Returns whether there are others by now."""
        return False

    def _order(self) -> list[Node]:
        """Returns the nodes in the order in which to try them."""
        nodes = self._nodes
        if self._spread and nodes:
            first = next(self._turn) % len(nodes)
            nodes = nodes[first:] + nodes[:first]
        now = time.monotonic()
        return sorted(nodes, key=lambda node: node.down_until > now)

    def _anywhere(
        self, path: str, wanted: Any, wait: float, is_repeatable: bool
    ) -> tuple[Node, bytes]:
        """Asks one node after the other, until one has room."""
        sent = body(wanted)
        deadline = time.monotonic() + wait
        while True:
            refused: IsoletError | None = None
            lost: IsoletError | None = None
            for node in self._order():
                try:
                    connection = node.connection()
                except ServerDiedError as error:
                    lost = error
                    continue
                try:
                    status, data = node.ask(connection, "POST", path, self._headers, sent)
                except ServerDiedError as error:
                    # It may have done it.
                    if not is_repeatable:
                        raise
                    lost = error
                    continue
                if status in _ELSEWHERE:
                    refused = refusal(status, data)
                    continue
                return node, checked(status, data)
            if self._look():
                continue
            if not waits(deadline):
                raise refused or lost or StartError("there is no node", "start one, or wait")


def _client(addresses: list[str], key: str | None, spread: bool) -> Client:
    return Client(addresses, key, spread=spread)


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
        job = _job(code, options.get("inputs"), of_run(options))
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
        job = _job(code, options.get("inputs"), of_stream(options))
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
            if status != _AGAIN or not waits(deadline):
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


def _job(code: str, inputs: Inputs | None, wire: dict[str, Any]) -> dict[str, Any]:
    """Returns a run as `docs/reference/http-api.md` describes it."""
    job = dict(wire)
    job["code"] = text(code, "code")
    if inputs:
        job["inputs"] = variables(inputs)
    return job


def _variable(name: str) -> str:
    return f"/variables/{quote(text(name, 'name'), safe='')}"
