"""Sessions on nodes, `isolet serve --listen`, over HTTP: `Client`, `Session`.

>>> client = isolet.node.Client("http://10.0.0.5:8080", key=KEY)
>>> with client.session(tools=[search]) as session:
...     print(session.run("search('cats')").value)
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ._http import Node, body, checked, refusal, waits
from ._json import decode
from ._keywords import shows
from ._node_files import Files
from ._node_session import AGAIN, Session, job_of
from ._values import text, variables
from .errors import IsoletError, ServerDiedError, StartError
from .execution import Execution
from .options import Inputs, of_run
from .policy import Compiled, Policy

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from .tools import Tool

__all__ = ["Client", "Files", "Session"]

_ELSEWHERE = (429, 503)
"""The statuses by which a node says that it has no room for a session."""


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

    @shows(Policy)
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
                failed = found if failed is None or status == AGAIN else failed
                if status not in (404, AGAIN):
                    raise found
            if not waits(deadline):
                raise failed or StartError("there is no node", "start one, or wait")

    @shows(Policy)
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
        job = job_of(code, inputs, of_run({"timeout": timeout}))
        job["policy"] = Compiled(policy).wire
        return Execution(decode(self._anywhere("/v1/run", job, wait, is_repeatable=False)[1]))

    @shows(Policy)
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
        job = job_of(code, inputs, of_run({"timeout": timeout}))
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
