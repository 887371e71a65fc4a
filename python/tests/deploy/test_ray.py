"""`isolet.ray` on a cluster of Ray nodes: sessions, and what dies with what."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

# Before Ray is imported. It would use an address of the machine that others reach.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
ray = pytest.importorskip("ray")

from ray.cluster_utils import Cluster  # noqa: E402
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: E402

import isolet  # noqa: E402
import isolet.ray  # noqa: E402

SECONDS = 60
"""How long a test may wait."""

NODE = {
    "num_cpus": 1,
    "include_dashboard": False,
    "node_ip_address": "127.0.0.1",
    "object_store_memory": 80 << 20,
}
# Ray notices after two seconds that a Ray node has gone.
HEALTH = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 1000,
    "health_check_failure_threshold": 2,
}
MOST = 100
"""The sessions of each node."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster of three Ray nodes with nodes of isolet."""
    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "_system_config": HEALTH})
    try:
        for _ in range(2):
            cluster.add_node(**NODE)
        ray.init(cluster.address, _node_ip_address="127.0.0.1", log_to_driver=False)
        isolet.ray.start(f"max_sessions = {MOST}")
        yield cluster
        isolet.ray.stop()
    finally:
        ray.shutdown()
        cluster.shutdown()


def until(condition: Callable[[], object]) -> None:
    """Waits until a condition holds. Fails if it never does."""
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.05)


def in_threads(work: Callable[[Any], Any], items: Any) -> list[Any]:
    with ThreadPoolExecutor(8) as threads:
        return list(threads.map(work, items))


def processes() -> dict[int, tuple[int, str, str]]:
    """The parent, the start and the command line of each process."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        # It may end meanwhile.
        with contextlib.suppress(OSError):
            fields = (place / "stat").read_text().rsplit(")", 1)[1].split()
            command = (place / "cmdline").read_text().replace("\0", " ")
            if fields[0] != "Z":
                found[int(place.name)] = (int(fields[1]), fields[19], command)
    return found


def serving(node: isolet.ray.Node) -> int:
    """The process of a node."""
    (pid,) = (
        pid
        for pid, (_, _, line) in processes().items()
        if f"serve --listen 127.0.0.1:0 --name {node.name} " in line
    )
    return pid


def family(pid: int) -> set[tuple[int, str]]:
    """A process and all its descendants, each with its start."""
    every = processes()
    members = {pid}
    while more := {each for each, (parent, _, _) in every.items() if parent in members} - members:
        members |= more
    return {(each, every[each][1]) for each in members}


def have_ended(members: set[tuple[int, str]]) -> bool:
    every = processes()
    return not any(pid in every and every[pid][1] == start for pid, start in members)


def status_of(address: str, session_id: str) -> int:
    """What a node answers who asks for a session and has the key."""
    headers = {"Authorization": f"Bearer {isolet.ray.key()}"}
    request = urllib.request.Request(f"{address}/v1/sessions/{session_id}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def own_node() -> isolet.ray.Node:
    own = ray.get_runtime_context().get_node_id()
    return next(node for node in isolet.ray.nodes() if node.ray_node_id == own)


def open_sessions(pool: isolet.ray.Pool, count: int) -> list[Any]:
    return in_threads(lambda index: pool.session(inputs={"own": index}), range(count))


def are_right(sessions: list[Any]) -> bool:
    return in_threads(lambda session: session.eval("own"), sessions) == list(range(len(sessions)))


def close(sessions: list[Any]) -> None:
    in_threads(lambda session: session.close(), sessions)


def test_ray_has_to_be_initialised() -> None:
    for use in (isolet.ray.start, isolet.ray.nodes, isolet.ray.stop, isolet.ray.Pool):
        with pytest.raises(isolet.ConfigError, match=r"ray\.init"):
            use()


def test_a_pool_fills_the_nodes_and_each_session_is_right(cluster: Any) -> None:
    pool = isolet.ray.Pool()
    # The own node has room for all of these.
    first = open_sessions(pool, 10)
    assert {session.address for session in first} == {own_node().address}
    close(first)
    sessions = open_sessions(pool, 3 * MOST)
    places = Counter(session.address for session in sessions)
    assert places == {node.address: MOST for node in isolet.ray.nodes()}
    assert are_right(sessions)
    with pytest.raises(isolet.LimitError, match=f"full: limit {MOST}"):
        pool.session()
    close(sessions)


def test_a_pool_uses_the_node_of_the_task_that_it_was_sent_to(cluster: Any) -> None:
    @ray.remote(num_cpus=0)
    def use(pool: isolet.ray.Pool) -> tuple[str, str, int]:
        with pool.session(inputs={"x": 41}) as session:
            return ray.get_runtime_context().get_node_id(), session.id, session.eval("x + 1")

    pool = isolet.ray.Pool()
    names = {node.ray_node_id: node.name for node in isolet.ray.nodes()}
    assert len(names) == 3
    for place, name in names.items():
        here = NodeAffinitySchedulingStrategy(place, soft=False)
        used = use.options(scheduling_strategy=here).remote(pool)
        node_id, session_id, value = ray.get(used, timeout=SECONDS)
        assert (node_id, session_id.startswith(f"{name}-"), value) == (place, True, 42)


def test_a_key_is_needed_and_start_again_keeps_the_nodes(cluster: Any) -> None:
    before, key = isolet.ray.nodes(), isolet.ray.key()
    addresses = [node.address for node in before]
    with pytest.raises(isolet.ConfigError, match="no key of this node"):
        isolet.node.Client(addresses).session()
    assert isolet.node.Client(addresses, key).run("40 + 2").value == 42
    again = isolet.ray.start("max_sessions = 1")
    assert sorted(again, key=str) == sorted(before, key=str)
    assert isolet.ray.key() == key


def test_a_node_that_is_killed_comes_back_without_its_sessions(cluster: Any) -> None:
    pool = isolet.ray.Pool(spread=True)
    sessions = open_sessions(pool, 30)
    before = own_node()
    lost = [session for session in sessions if session.address == before.address]
    assert len(lost) == 10
    members = family(serving(before))
    os.kill(serving(before), signal.SIGKILL)
    until(lambda: have_ended(members))
    for session in lost:
        with pytest.raises(isolet.ServerDiedError, match="make a new one"):
            session.run("own")
    others = [session for session in sessions if session.address != before.address]
    assert in_threads(lambda session: session.run("own").ok, others) == [True] * 20

    def is_back() -> bool:
        now = {node.name: node.address for node in isolet.ray.nodes()}
        return now.get(before.name, before.address) != before.address

    until(is_back)
    new = open_sessions(isolet.ray.Pool(), MOST)
    assert {session.address for session in new} == {own_node().address}
    assert are_right(new)
    assert {status_of(own_node().address, session.id) for session in lost} == {410}
    assert {session.id for session in lost}.isdisjoint(session.id for session in new)
    close(new + others)
    with pool.session() as session:
        assert session.eval("1") == 1


def test_a_ray_node_takes_its_sessions_with_it_and_no_others(cluster: Any) -> None:
    sessions = open_sessions(isolet.ray.Pool(), 3 * MOST)
    gone = cluster.worker_nodes.copy().pop()
    node = next(each for each in isolet.ray.nodes() if each.ray_node_id == gone.node_id)
    members = family(serving(node))
    assert len(members) > MOST
    cluster.remove_node(gone, allow_graceful=False)
    until(lambda: have_ended(members))
    stay = [session for session in sessions if session.address != node.address]
    assert len(stay) == 2 * MOST
    assert all(in_threads(lambda session: session.run("own").ok, stay))
    for session in sessions:
        if session not in stay:
            with pytest.raises(isolet.ServerDiedError, match="make a new one"):
                session.run("own")
    until(lambda: len(isolet.ray.nodes()) == 2)
    assert node.name not in {each.name for each in isolet.ray.nodes()}
    assert all(in_threads(lambda session: session.run("own").ok, stay))
    close(stay)


def test_a_ray_node_that_joins_gets_a_node(cluster: Any) -> None:
    pool = isolet.ray.Pool(spread=True)
    known = {node.name for node in isolet.ray.nodes()}
    added = cluster.add_node(**NODE)
    until(lambda: added.node_id in {node.ray_node_id for node in isolet.ray.nodes()})
    (new,) = (node for node in isolet.ray.nodes() if node.name not in known)
    sessions = open_sessions(isolet.ray.Pool(spread=True), 2 * (len(known) + 1))
    assert Counter(session.address for session in sessions)[new.address] == 2
    assert are_right(sessions)
    close(sessions)
    # A pool of before notices when the nodes that it knows are full.
    full = open_sessions(pool, len(known) * MOST)
    with pool.session() as session:
        assert (session.address, session.eval("1")) == (new.address, 1)
    close(full)


def test_nodes_outlive_the_program_that_has_started_them(cluster: Any) -> None:
    pool = isolet.ray.Pool()
    isolet.ray.stop()
    program = (
        "import ray, isolet.ray\n"
        f"ray.init({cluster.address!r}, _node_ip_address='127.0.0.1')\n"
        "isolet.ray.start()"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=SECONDS)
    assert len(isolet.ray.nodes()) == 3
    # These have another key than those of before.
    assert pool.run("40 + 2").value == 42


def test_nothing_is_left_after_stop_and_what_is_wrong_is_said(cluster: Any) -> None:
    pool = isolet.ray.Pool()
    session = pool.session()
    members = set().union(*(family(serving(node)) for node in isolet.ray.nodes()))
    isolet.ray.stop()
    until(lambda: have_ended(members))
    isolet.ray.stop()
    with pytest.raises(isolet.ServerDiedError):
        session.run("1")
    for use in (isolet.ray.nodes, isolet.ray.key, isolet.ray.Pool, pool.session):
        with pytest.raises(isolet.StartError, match=r"isolet\.ray\.start"):
            use()
    with pytest.raises(isolet.StartError, match=r"(?s)nonsense.*isolet\.ray\.stop"):
        isolet.ray.start("nonsense = 1")
    isolet.ray.stop()
