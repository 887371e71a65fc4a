"""Sessions of the pods of a set through HAProxy and nginx, which find the pods by DNS."""

from __future__ import annotations

import re

import pytest
from fleet import PROXIES, Node, free_port, proxy, until
from names import Names

DOMAIN = "isolet.isolet.svc.cluster.local"
FORGED = "a" * 24


class Pods:
    """The nodes of a set, isolet-0 and so on, with the names that DNS would have."""

    def __init__(self, names: Names):
        self.names = names
        self.port = free_port()
        self.nodes: dict[str, Node] = {}
        self._hosts = 1

    def start(self, number: int) -> Node:
        """Starts a pod. Each start has an address of its own, and all have the same port."""
        self._hosts += 1
        name, host = f"isolet-{number}", f"127.0.0.{self._hosts}"
        self.nodes[name] = Node(name, address=f"{host}:{self.port}")
        self.names.table[f"{name}.{DOMAIN}"] = [host]
        self._tell()
        return self.nodes[name]

    def kill(self, number: int) -> None:
        name = f"isolet-{number}"
        self.nodes.pop(name).kill()
        del self.names.table[f"{name}.{DOMAIN}"]
        self._tell()

    def _tell(self) -> None:
        self.names.table[DOMAIN] = [one.address.split(":")[0] for one in self.nodes.values()]


@pytest.fixture
def pods():
    with Names({}) as names:
        pods = Pods(names)
        try:
            for number in range(2):
                pods.start(number)
            yield pods
        finally:
            for number in range(3):
                if f"isolet-{number}" in pods.nodes:
                    pods.kill(number)


@pytest.mark.parametrize("kind", sorted(PROXIES))
def test_pods_are_found_when_they_come_go_and_change_their_address(kind, pods):
    with proxy(kind, pods.nodes, pods.names.address) as (_, client):
        until(lambda: {client.create()["node"] for _ in range(8)} == {"isolet-0", "isolet-1"})
        sessions = [client.create(inputs={"secret": number}) for number in range(8)]

        def answers(session: dict) -> str:
            answer = client.run(session["id"], "print(secret)")
            return answer.json()["stdout"] if answer.status == 200 else answer.code

        assert [answers(one) for one in sessions] == [f"{number}\n" for number in range(8)]
        pods.start(2)
        until(lambda: client.create()["node"] == "isolet-2")
        pods.kill(0)
        mine = [one for one in sessions if one["node"] == "isolet-0"]
        until(lambda: {answers(one) for one in mine} == {"node_down"})
        assert {client.create()["node"] for _ in range(8)} == {"isolet-1", "isolet-2"}
        pods.start(0)
        until(lambda: {answers(one) for one in mine} == {"gone"})
        until(lambda: client.create()["node"] == "isolet-0")
        assert [answers(one) for one in sessions if one["node"] == "isolet-1"] == [
            f"{number}\n" for number, one in enumerate(sessions) if one["node"] == "isolet-1"
        ]

        def place(name: str) -> str:
            return client.ask("POST", "/v1/sessions", **{"X-Session-ID": name}).json()["node"]

        # Named sessions have servers of their own in the proxy, which finds the pod for each.
        until(lambda: "isolet-0" in {place(f"name {number}") for number in range(16)})
        places = [place("a name") for _ in range(5)]
        assert len(set(places)) == 1, places


@pytest.mark.parametrize("kind", sorted(PROXIES))
def test_a_name_that_is_not_of_the_set_is_not_looked_up(kind, pods):
    with proxy(kind, pods.nodes, pods.names.address) as (_, client):
        for name in ("metadata", "isolet", "isolet-x", "isolet-00001", "kube-dns"):
            answer = client.ask("GET", f"/v1/sessions/{name}-{FORGED}")
            assert answer.status in (404, 502), answer
        known = client.ask("GET", f"/v1/sessions/isolet-0-{FORGED}")
        assert (known.status, known.code) == (410, "gone")
        pod = re.compile(rf"(isolet-\d\.)?{re.escape(DOMAIN)}")
        assert [name for name in pods.names.asked if not pod.fullmatch(name)] == []
