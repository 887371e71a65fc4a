"""Nodes on a Ray cluster: `start`, `stop`, `nodes`, `key`; `Pool` opens sessions on them.

>>> ray.init(address="auto")
>>> isolet.ray.start()
>>> with isolet.ray.Pool().session() as session:
...     print(session.run("40 + 2").value)

Ray starts the nodes, and starts them anew. Sessions never go through Ray: a pool speaks HTTP to the
node. Needs Ray 2.60, and this package on each machine.
"""

# pyright: basic, reportMissingImports=false

# Ray is not installed where pyright runs, which takes this file for the module `ray`.
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

import contextlib
import logging
import os
import random
import secrets
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import ray
from ray.exceptions import (
    ActorDiedError,
    ActorUnavailableError,
    ActorUnschedulableError,
    RayError,
)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ._find import find_binary
from ._node_lines import address_in
from .errors import ConfigError, ServerDiedError, StartError
from .node import Client

_NAMESPACE = "isolet"
_DIRECTORY = "directory"
_HEAD = "node:__internal_head__"
"""The resource of the Ray node that is the head of the cluster."""
_ROUND_SECONDS = 1.0
"""How often the directory looks for machines that have joined, left, or got another address."""
_RETRY_SECONDS = 30.0
"""After how long a node that could not be started is tried again."""
_ANSWER_SECONDS = 10.0
_END_SECONDS = 30.0
_FRESH_SECONDS = 30.0
"""How old the addresses may be to which a pool sends a new session. Older ones are asked for."""

_log = logging.getLogger("isolet")


@dataclass(frozen=True, slots=True)
class Node:
    """A node of isolet on a Ray cluster."""

    name: str
    """Its name, with which the ids of its sessions begin."""
    address: str
    """Where it listens: `http://HOST:PORT`. A client needs the `key`."""
    ray_node_id: str
    """The id of the Ray node that it runs on."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What the directory knows."""

    nodes: list[Node]
    key: str
    failures: dict[str, str]
    """Why there is no node on a Ray node, by its id."""


def start(config: str | os.PathLike[str] = "", *, timeout: float = 120) -> list[Node]:
    """Starts a node on each Ray node, also on those that join later. Returns the nodes.

    They run until `stop`, also after this program. Nodes that run already stay as they are, with
    their configuration.

    Args:
        config: the configuration of all nodes, as `docs/reference/http-api.md` describes it,
            without tenants: TOML, or the `Path` of a file with it. Without one nothing is allowed.
        timeout: the most seconds to wait. The first start on a machine makes a memory image.

    Raises:
        StartError: a node could not be started, or not in time.
        ServerDiedError: Ray does not answer in time.
        ConfigError: Ray is not initialised.
    """
    if not isinstance(config, str):
        with open(config, encoding="utf-8") as file:
            config = file.read()
    _check_ray()
    options = _options(_DIRECTORY, resources={_HEAD: 0.001}, max_task_retries=-1)
    directory = ray.remote(_Directory).options(**options)
    made = directory.remote(config, secrets.token_urlsafe(32))
    end = time.monotonic() + timeout
    while True:
        known, alive = _asked(made, timeout), _alive()
        failed = [why for each, why in known.failures.items() if each in alive]
        if failed:
            hint = "call `isolet.ray.stop()` before a start with another configuration"
            raise StartError("; ".join(failed), hint)
        missing = alive - {node.ray_node_id for node in known.nodes}
        if not missing:
            return known.nodes
        if time.monotonic() > end:
            raise StartError(
                f"{len(missing)} of {len(alive)} Ray nodes have no node after {timeout} s",
                "the logs of Ray's workers have what the nodes say",
            )
        time.sleep(0.05)


def nodes() -> list[Node]:
    """Returns the nodes that are ready.

    Raises:
        StartError: the cluster has none, because nobody has called `start`.
        ServerDiedError: Ray does not answer in time.
        ConfigError: Ray is not initialised.
    """
    return _known().nodes


def key() -> str:
    """Returns the key of all nodes, which `start` has made: for clients that are no `Pool`.

    Raises:
        StartError: the cluster has no nodes, because nobody has called `start`.
        ServerDiedError: Ray does not answer in time.
        ConfigError: Ray is not initialised.
    """
    return _known().key


def stop() -> None:
    """Ends the nodes of the cluster, and their sessions. Does nothing if there are none.

    Raises:
        StartError: Ray has not ended them in time.
        ConfigError: Ray is not initialised.
    """
    _check_ray()
    end = time.monotonic() + _END_SECONDS
    # Before it has ended, the directory may have made another one.
    while names := _actors():
        # First the directory.
        for name in sorted(names, key=lambda name: name != _DIRECTORY):
            # It may have ended meanwhile.
            with contextlib.suppress(ValueError):
                ray.kill(ray.get_actor(name, _NAMESPACE))
        if time.monotonic() > end:
            raise StartError(f"{len(names)} actors have not ended after {_END_SECONDS} s")
        time.sleep(0.05)


class Pool(Client):
    """Opens sessions on the nodes of the cluster, as an `isolet.node.Client` that finds them.

    A session goes to the node on the Ray node where the pool is used, and to another one if that
    has no room. Nodes that have come or gone are noticed. Tasks and actors can be given a pool.

    Args:
        spread: whether sessions go to all nodes in turn instead: for a program that opens those of
            the whole cluster.

    Raises:
        StartError: the cluster has no nodes, because nobody has called `start`.
        ServerDiedError: Ray does not answer in time.
        ConfigError: Ray is not initialised.
    """

    def __init__(self, *, spread: bool = False) -> None:
        known = _known()
        self._looked = time.monotonic()
        super().__init__(_nearest_first(known.nodes), known.key, spread=spread)

    def __reduce__(self) -> tuple[Any, ...]:
        return _pool, (self._spread,)

    def _look(self) -> bool:
        self._looked = time.monotonic()
        try:
            known = _known()
        except ServerDiedError:
            # The directory starts anew. The nodes do not need it.
            return False
        return self._use(_nearest_first(known.nodes), known.key)

    def _order(self) -> list[Any]:
        if time.monotonic() > self._looked + _FRESH_SECONDS:
            # If there are none any more, those that are known will not answer.
            with contextlib.suppress(ConfigError, StartError):
                self._look()
        return super()._order()


def _pool(spread: bool) -> Pool:
    return Pool(spread=spread)


def _nearest_first(found: list[Node]) -> list[str]:
    """Returns addresses: of this Ray node, of this machine, and the others in any order."""
    own, host = ray.get_runtime_context().get_node_id(), f"://{_host()}:"
    # Not all pools in the same order.
    nodes = random.sample(found, len(found))
    nodes.sort(key=lambda node: (node.ray_node_id != own, host not in node.address))
    return [node.address for node in nodes]


class _Directory:
    """The actor that has a keeper started on each Ray node, and knows the nodes.

    It knows nothing that it could not find out again. Ray passes the key again when it starts the
    actor anew.
    """

    def __init__(self, config: str, key: str) -> None:
        hashed = sha256(key.encode()).hexdigest()
        self._config = f'{config}\n[tenants.ray]\nkeys = ["sha256:{hashed}"]\n'
        self._key = key
        self._keepers: dict[str, Any] = {}
        # What each keeper was asked and has not answered yet.
        self._asked: dict[str, Any] = {}
        self._nodes: dict[str, Node] = {}
        self._failures: dict[str, tuple[float, str]] = {}
        self._has_looked = threading.Event()
        threading.Thread(target=self._watch, name="isolet", daemon=True).start()

    def known(self) -> _Known:
        # Started anew, it does not know the nodes that run.
        self._has_looked.wait(_ANSWER_SECONDS / 2)
        failures = {each: why for each, (_, why) in list(self._failures.items())}
        return _Known(list(self._nodes.values()), self._key, failures)

    def _watch(self) -> None:
        while True:
            try:
                self._look()
            except RayError as error:
                _log.warning("the nodes could not be looked at: %s", error)
            self._has_looked.set()
            time.sleep(_ROUND_SECONDS)

    def _look(self) -> None:
        alive, now = _alive(), time.monotonic()
        for each in self._keepers.keys() - alive:
            self._forget(each)
        for each, (since, _) in list(self._failures.items()):
            if each not in alive or now > since + _RETRY_SECONDS:
                del self._failures[each]
        for each in alive - self._keepers.keys() - self._failures.keys():
            here = NodeAffinitySchedulingStrategy(each, soft=False)
            options = _options(_name(each), scheduling_strategy=here)
            self._keepers[each] = ray.remote(_Keeper).options(**options).remote(self._config)
        for each in self._keepers.keys() - self._asked.keys():
            self._asked[each] = self._keepers[each].node.remote()
        # Those that start will answer later.
        asked = list(self._asked.values())
        answered, _ = ray.wait(asked, num_returns=len(asked), timeout=_ROUND_SECONDS)
        for each, answer in list(self._asked.items()):
            if answer in answered:
                del self._asked[each]
                self._hear(each, answer)

    def _hear(self, each: str, answer: Any) -> None:
        try:
            node, failure = ray.get(answer)
        except ActorUnavailableError:
            # Ray starts it anew.
            self._nodes.pop(each, None)
            return
        except (ActorDiedError, ActorUnschedulableError) as error:
            node, failure = None, str(error)
        if node is not None:
            self._nodes[each] = node
            return
        ray.kill(self._keepers[each])
        self._forget(each)
        why = f"there is no isolet on the Ray node {each}: {failure}"
        self._failures[each] = time.monotonic(), why

    def _forget(self, each: str) -> None:
        del self._keepers[each]
        self._asked.pop(each, None)
        self._nodes.pop(each, None)


class _Keeper:
    """The actor that runs a node on its Ray node. It ends with it, and Ray starts it anew."""

    def __init__(self, config: str) -> None:
        self._node: Node | None = None
        self._failure = ""
        try:
            self._start(config)
        except (StartError, OSError) as error:
            self._failure = str(error)

    def node(self) -> tuple[Node | None, str]:
        """Returns the node, or why there is none."""
        return self._node, self._failure

    def _start(self, config: str) -> None:
        ray_node_id = ray.get_runtime_context().get_node_id()
        name = _name(ray_node_id)
        # A file without a place: nobody has to remove it.
        file = os.memfd_create("isolet")
        with open(file, "w", encoding="utf-8", closefd=False) as written:
            written.write(config)
        command = [find_binary(), "serve", "--listen", f"{_host()}:0", "--name", name]
        command += ["--config", f"/dev/fd/{file}", "--die-with-parent"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, pass_fds=[file]
        )
        os.close(file)
        said: list[str] = []
        for line in self._lines():
            said.append(line)
            address = address_in(line)
            if address is not None:
                self._node = Node(name, address, ray_node_id)
                threading.Thread(target=self._watch, name="isolet", daemon=True).start()
                return
        raise StartError(f"it ended with status {self._process.wait()}: {''.join(said).strip()}")

    def _lines(self) -> Any:
        """Yields what the node says, and says it in the log of the actor."""
        for line in self._process.stderr or ():
            sys.stderr.write(line)
            yield line

    def _listen(self) -> None:
        for _ in self._lines():
            pass

    def _watch(self) -> None:
        """Ends the actor's process with the node: Ray does not notice that by itself."""
        listening = threading.Thread(target=self._listen, name="isolet", daemon=True)
        listening.start()
        self._process.wait()
        # For its last words. Another process may have its end of the pipe.
        listening.join(_ROUND_SECONDS)
        os._exit(1)


def _check_ray() -> None:
    if not ray.is_initialized():
        # Ray would start a cluster of its own.
        raise ConfigError("Ray is not initialised", '`ray.init(address="auto")`')


def _known() -> _Known:
    _check_ray()
    try:
        directory = ray.get_actor(_DIRECTORY, _NAMESPACE)
    except ValueError:
        hint = "`isolet.ray.start()`"
        raise StartError("the Ray cluster has no nodes of isolet", hint) from None
    return _asked(directory, _ANSWER_SECONDS)


def _asked(directory: Any, seconds: float) -> _Known:
    """Asks the directory."""
    try:
        return ray.get(directory.known.remote(), timeout=seconds)
    except RayError as error:
        raise ServerDiedError(f"the directory of the nodes does not answer: {error}") from error


def _options(name: str, **place: Any) -> dict[str, Any]:
    """Returns the options of an actor that there is once in the cluster."""
    return {
        "name": name,
        "namespace": _NAMESPACE,
        "lifetime": "detached",
        "get_if_exists": True,
        "num_cpus": 0,
        "max_restarts": -1,
        **place,
    }


def _name(ray_node_id: str) -> str:
    """Returns the name of the node on a Ray node. That it is in ids of sessions limits it."""
    return f"ray-{ray_node_id[:16]}"


def _actors() -> list[str]:
    """Returns the names of the actors of this module."""
    named: list[Any] = ray.util.list_named_actors(all_namespaces=True)
    return [each["name"] for each in named if each["namespace"] == _NAMESPACE]


def _alive() -> set[str]:
    return {each["NodeID"] for each in ray.nodes() if each["Alive"]}


def _host() -> str:
    """Returns the address of this Ray node, as URLs have it."""
    host = ray.util.get_node_ip_address()
    return f"[{host}]" if ":" in host else host
