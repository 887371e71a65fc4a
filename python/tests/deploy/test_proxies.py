"""Sessions of several nodes through HAProxy and nginx, with the configurations of `deploy/`.

`ISOLET_TEST_SESSIONS` says how many sessions the large test has. What it measures is printed.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from fleet import PROXIES, Client, Node, in_threads, nodes, proxy, until
from node_process import SECONDS
from processes import pss, tree

SESSIONS = int(os.environ.get("ISOLET_TEST_SESSIONS", "900"))
NAMES = ("n1", "n2", "node-3")
FORGED = "a" * 24
MAX_BODY = 64 << 20


@pytest.fixture(params=sorted(PROXIES))
def kind(request) -> str:
    return request.param


@pytest.fixture
def fleet():
    with nodes(*NAMES) as fleet:
        yield fleet


@pytest.fixture
def through(kind, fleet):
    """The proxy, and a client of it."""
    with proxy(kind, fleet) as through:
        yield through


@pytest.fixture
def client(through) -> Client:
    return through[1]


class Creating:
    """Creates sessions one after the other, each of which has to be made at once."""

    def __init__(self, client: Client):
        self.made: list[dict] = []
        self.error: BaseException | None = None
        self._client = client
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            while not self._ends.is_set():
                answer = self._client.ask_once("POST", "/v1/sessions")
                assert answer.status == 201, answer
                self.made.append(answer.json())
        except BaseException as error:
            self.error = error

    def __enter__(self) -> Creating:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()
        assert self.error is None, self.error

    def more(self, count: int) -> None:
        """Waits until there are as many more."""
        least = len(self.made) + count
        until(lambda: self.error or len(self.made) >= least)


def test_a_killed_node_takes_its_sessions_along_and_nobody_elses(kind, capsys):
    room = ("--max-sessions", str(SESSIONS))
    with nodes(*NAMES, options=room) as fleet, proxy(kind, fleet) as (through, client):

        def create(number: int) -> dict:
            secret = f"secret {number}"
            return {"secret": secret, **client.create(inputs={"secret": secret})}

        def answers(session: dict) -> bool:
            answer = client.run(session["id"], "print(secret)")
            return answer.status == 200 and answer.json()["stdout"] == session["secret"] + "\n"

        def say(what: str) -> None:
            with capsys.disabled():
                print(f"\n{kind}, {SESSIONS} sessions: {what}", end="")

        begin = time.monotonic()
        sessions = in_threads(create, range(SESSIONS))
        say(f"{SESSIONS / (time.monotonic() - begin):.0f} created a second")
        begin = time.monotonic()
        assert all(in_threads(answers, sessions))
        say(f"{SESSIONS / (time.monotonic() - begin):.0f} runs a second")
        shares = Counter(session["node"] for session in sessions)
        assert set(shares) == set(NAMES)
        assert min(shares.values()) > SESSIONS / 5, shares
        processes = tree(*(node.process.pid for node in fleet.values()))
        say(f"{pss(processes) / 2**20 / SESSIONS:.2f} MiB a session of {len(processes)} processes")
        say(f"{pss(tree(through.process.pid)) / 2**20:.1f} MiB of the proxy")

        victims = [session for session in sessions if session["node"] == "n2"]
        others = [session for session in sessions if session["node"] != "n2"]
        with Creating(client) as creating:
            creating.more(5)
            begin = time.monotonic()
            fleet["n2"].kill()
            path = f"/v1/sessions/{victims[0]['id']}/runs"
            until(lambda: client.ask_once("POST", path, {"code": "1"}).status == 502)
            say(f"noticed after {(time.monotonic() - begin) * 1000:.0f} ms")
            creating.more(20)
            begin = time.monotonic()
            assert all(in_threads(answers, others))
            say(f"{len(others) / (time.monotonic() - begin):.0f} runs a second of the others")
            gone = in_threads(lambda one: client.run(one["id"], "print(secret)"), victims)
            assert Counter((one.status, one.code) for one in gone) == {
                (502, "node_down"): len(victims)
            }

            begin = time.monotonic()
            fleet["n2"].start()
            creating.more(1)
            until(lambda: creating.made[-1]["node"] == "n2")
            say(f"started and in use again after {time.monotonic() - begin:.2f} s")

        # As many sessions as before, some of them on the node that was killed.
        new = in_threads(lambda _: client.create(inputs={"secret": "of a new one"}), victims)
        assert {session["node"] for session in new} == set(NAMES)
        gone = in_threads(lambda one: client.run(one["id"], "print(secret)"), victims)
        assert Counter((one.status, one.code) for one in gone) == {(410, "gone"): len(victims)}
        assert all(in_threads(answers, others))


def test_a_session_is_found_by_path_and_header_and_a_name_by_its_hash(client, fleet):
    for name in NAMES:
        # The creation itself does not ask for a node: the header brings it there.
        answer = client.ask("POST", "/v1/sessions", **{"E2b-Sandbox-Id": f"{name}-{FORGED}"})
        assert answer.json()["node"] == name
        session = answer.json()["id"]
        assert client.ask("GET", f"/v1/sessions/{session}").json()["id"] == session
        # The path says more than the header.
        other = {"E2b-Sandbox-Id": f"n1-{FORGED}"}
        assert client.ask("GET", f"/v1/sessions/{session}", **other).json()["id"] == session

    def node_of(number: int) -> str:
        headers = {"X-Session-ID": f"session-{number}"}
        return client.ask("POST", "/v1/sessions", **headers).json()["node"]

    places = [node_of(number) for number in range(30)]
    assert set(places) == set(NAMES)
    assert [node_of(number) for number in range(30)] == places
    fleet["n1"].kill()
    moved = [node_of(number) for number in range(30)]
    assert [new for old, new in zip(places, moved, strict=True) if old != "n1"] == [
        old for old in places if old != "n1"
    ]
    for path in (
        f"/sandboxes/n1-{FORGED}",
        f"/v2/sandboxes/n1-{FORGED}/connect",
        f"/v1/sandboxes/n1-{FORGED}/pause",
        f"/opensandbox/n1-{FORGED}/code",
    ):
        assert client.ask("POST", path).status == 502
        assert client.ask("POST", path.replace("n1", "n2")).status != 502


def test_a_sandbox_is_found_by_its_name_and_all_files_of_librechat_on_one_node(client):
    for name in NAMES:
        host = f"49999-{name}-{FORGED}.sandboxes.example"
        # A node without keys refuses hosts that are not its own.
        assert client.ask("POST", "/v1/sessions", Host=host).status == 403
        unlisted = client.ask("POST", "/v1/sessions", Host=host.replace(name, "n9"))
        assert (unlisted.status, unlisted.code) == (502, "node_down")
        # The header says more than the name, as it does to a node.
        header = {"E2b-Sandbox-Id": f"n9-{FORGED}", "Host": host}
        assert client.ask("POST", "/v1/sessions", **header).status == 502
        sandbox = client.ask("POST", "/v1/sandboxes", {}).json()["id"]
        ran = client.ask("POST", f"/opensandbox/{sandbox}/code", {"code": "6 * 7"})
        assert (ran.status, '"text":"42"' in ran.body.decode()) == (200, True)
    code = {"lang": "py", "code": "open('a.txt', 'a').write('x')"}
    first = client.ask("POST", "/librechat/exec", code).json()
    for _ in range(2 * len(NAMES)):
        client.ask("POST", "/librechat/exec", {**code, "session_id": first["session_id"]})
    seen = {**code, "code": "print(len(open('a.txt').read()))", "session_id": first["session_id"]}
    assert client.ask("POST", "/librechat/exec", seen).json()["stdout"] == f"{1 + 2 * len(NAMES)}\n"


@pytest.mark.parametrize("name", ["n4", "localhost", "127-0-0-1", "n", "n1-n2", "owners", "any"])
def test_a_name_that_is_not_listed_reaches_nothing(client, name):
    paths = ("/v1/sessions", "/sandboxes", "/v2/sandboxes", "/v1/sandboxes", "/opensandbox")
    for path in paths:
        answer = client.ask("GET", f"{path}/{name}-{FORGED}/more")
        assert (answer.status, answer.code) == (502, "node_down")
    answer = client.ask("POST", "/v1/sessions", **{"E2b-Sandbox-Id": f"{name}-{FORGED}"})
    assert (answer.status, answer.code) == (502, "node_down")


def test_what_is_no_id_is_refused_by_a_node(client):
    for wrong in ("x", f"n1-{FORGED}a", f"n1_{FORGED}", f"N1-{FORGED}", f"10.0.0.1:80-{FORGED}"):
        answer = client.ask("GET", f"/v1/sessions/{wrong}")
        assert (answer.status, answer.code) == (404, "not_found")


def test_what_is_of_one_node_is_not_to_be_had(client):
    lists = ("/v1/sessions", "/v1/snapshots", "/sandboxes", "/v2/sandboxes?limit=9", "/snapshots")
    lists += ("/v1/sandboxes",)
    for path in ("/metrics", "/metrics?all=1", "/v1/node", "/v1/admin/drain", *lists):
        answer = client.ask("GET", path)
        assert (answer.status, answer.code) == (404, "no_route")
        assert answer.json()["detail"] == "only nodes answer this"


def said(events: Iterator[dict], text: str) -> None:
    """Reads output until it is this text. It comes in pieces of any size."""
    found = ""
    while len(found) < len(text):
        event = next(events)
        assert event["type"] == "stdout", event
        found += event["text"]
    assert found == text


def test_a_batch_is_answered_while_it_is_sent_or_not_taken(kind, through):
    with contextlib.closing(http.client.HTTPConnection(through[0].address)) as connection:
        connection.putrequest("POST", "/v1/batch")
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders()
        # The answer begins before the request ends, from when on only the socket is of use.
        sent = connection.sock

        def send(line: bytes) -> None:
            sent.sendall(b"%x\r\n%s\r\n" % (len(line), line))

        send(b'{"id": 0, "code": "0"}\n')
        answer = connection.getresponse()
        if kind == "nginx":
            assert answer.status == 404
            return
        for number in range(1, 4):
            assert json.loads(answer.readline())["id"] == number - 1
            send(b'{"id": %d, "code": "0"}\n' % number)
        send(b"")
        assert json.loads(answer.readline())["id"] == 3
        assert answer.read() == b""


def test_events_come_while_the_run_waits_for_its_client(client):
    session = client.create(policy={"tools": [{"name": "ask"}]})["id"]
    _, events = client.events(session, "print('before')\nprint(ask())\nprint('after')")
    said(events, "before\n")
    call = next(events)
    assert (call["type"], call["name"]) == ("tool_call", "ask")
    # Had the proxy kept anything back, nobody would know of this call.
    path = f"/v1/sessions/{session}/calls/{call['call_id']}"
    assert client.ask("POST", path, {"value": "answered"}).status == 204
    said(events, "answered\nafter\n")
    assert next(events)["execution"]["status"] == "completed"


@pytest.mark.parametrize("accept", ["application/json", "application/x-ndjson"])
def test_a_client_that_goes_away_has_its_run_interrupted(kind, accept, tmp_path):
    config = tmp_path / "node.toml"
    # So long that nothing else ends the run.
    config.write_text("ceiling = { limits = { run_time = 3600 } }\n")
    options = ("--config", str(config))
    with nodes(*NAMES, options=options) as fleet, proxy(kind, fleet) as (through, client):
        session = client.create(policy={"limits": {"run_time": 3600}})
        asking = Client(fleet[session["node"]].address)

        def running() -> int:
            return asking.ask("GET", "/v1/node").json()["running"]

        going = http.client.HTTPConnection(through.address)
        path, code = f"/v1/sessions/{session['id']}/runs", "while True: pass"
        going.request("POST", path, json.dumps({"code": code}), {"Accept": accept})
        until(lambda: running() == 1)
        going.close()
        # Until then the session is busy.
        until(lambda: client.run(session["id"], "print(1)").status == 200)


def test_bodies_of_64_mib_pass_and_larger_ones_do_not(client):
    session = client.create()["id"]
    path = f"/v1/sessions/{session}/files/tmp/large"
    body = os.urandom(1 << 20) * (MAX_BODY >> 20)
    part = body[: MAX_BODY // 8]
    assert client.ask("PUT", path, part).status == 204
    assert client.ask("GET", path).body == part
    # It reaches the node, whose limit of a file is a smaller one.
    refused = client.ask("PUT", path, body)
    assert refused.status == 422
    assert b"limits.value_bytes" in refused.body
    assert client.ask("PUT", path, body + b"x").status in (400, 413)


def test_a_node_that_ends_finishes_its_runs_and_gets_no_new_session(client, fleet):
    session = client.create()
    node = fleet[session["node"]]
    code = "import time\nprint('begun', flush=True)\ntime.sleep(3)\nprint('done')"
    _, events = client.events(session["id"], code)
    said(events, "begun\n")
    node.terminate()
    with Creating(client) as creating:
        # Its own session still answers, so the node is there and only takes no new ones.
        path = f"/v1/sessions/{session['id']}"
        assert client.ask("GET", path).status == 200
        creating.more(20)
        once = [client.ask("POST", "/v1/run", {"code": "print(1)"}) for _ in range(40)]
        assert Counter(one.status for one in once) == {200: 40}
        said(events, "done\n")
        assert next(events)["execution"]["status"] == "completed"
        assert node.process.wait(SECONDS) == 0
        creating.more(20)
        assert client.ask("GET", path).status == 502
    assert node.name not in {one["node"] for one in creating.made}


def test_a_full_node_passes_new_sessions_on_and_only_full_nodes_refuse(kind):
    with nodes(*NAMES, options=("--max-sessions", "4")) as fleet, proxy(kind, fleet) as (_, client):
        sessions = [client.create() for _ in range(12)]
        assert Counter(one["node"] for one in sessions) == dict.fromkeys(NAMES, 4)
        refused = client.ask("POST", "/v1/sessions")
        assert (refused.status, refused.code, refused.headers["Retry-After"]) == (
            503,
            "capacity",
            "1",
        )
        # Whichever node it is that has room again.
        for session in {one["node"]: one for one in sessions}.values():
            assert client.ask("DELETE", f"/v1/sessions/{session['id']}").status == 204

            def has_room() -> bool:
                answer = client.ask("POST", "/v1/sessions")
                assert answer.status in (201, 503)
                return answer.status == 201

            until(has_room)


@pytest.mark.parametrize(
    ("path", "status"), [("/v1/run", 502), ("/run_code", 504), ("/v1/sessions/{}/runs", 502)]
)
def test_code_that_dies_with_its_node_is_not_run_again(client, fleet, path, status):
    asking = [(node, Client(node.address)) for node in fleet.values()]

    def running() -> list[Node]:
        return [one for one, at in asking if at.ask("GET", "/v1/node").json()["running"]]

    path = path.format(client.create()["id"])
    body = {"code": "while True: pass"} | ({"language": "python"} if "_" in path else {})
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(client.ask, "POST", path, body)
        until(running)
        [node] = running()
        node.kill()
        asking = [one for one in asking if one[0] is not node]
        assert answer.result(SECONDS).status == status
        assert running() == []
    # What is new goes to the nodes that are left.
    once = [client.ask("POST", "/v1/run", {"code": "print(1)"}) for _ in range(12)]
    assert Counter(one.status for one in once) == {200: 12}


def test_without_a_node_clients_get_what_they_send_again(client, fleet):
    session = client.create()["id"]
    for node in fleet.values():
        node.kill()
    assert client.ask("GET", f"/v1/sessions/{session}").status == 502
    for path in ("/v1/sessions", "/sandboxes", "/v1/run"):
        answer = client.ask("POST", path, {})
        assert (answer.status, answer.code) == (503, "capacity")
        assert answer.headers["Retry-After"] == "1"
        # E2B's clients fail in another way without it.
        assert answer.json()["message"] == answer.json()["detail"]
    assert client.ask("POST", "/run_code", {}).status == 504
    assert client.ask("POST", "/execute", {}, **{"X-Session-ID": "name"}).status == 502


def test_a_node_added_moves_no_session(through, fleet):
    proxy, client = through
    sessions = in_threads(lambda number: client.create(inputs={"secret": number}), range(60))
    with nodes("added") as added, Creating(client) as creating:
        proxy.reload({**fleet, **added})
        until(lambda: creating.error or "added" in {one["node"] for one in creating.made})
        runs = in_threads(lambda one: client.run(one["id"], "print(secret)"), sessions)
        assert [one.json()["stdout"] for one in runs] == [f"{number}\n" for number in range(60)]
        assert {one["node"] for one in sessions} == set(NAMES)
        proxy.reload(fleet)
        until(lambda: client.ask("GET", f"/v1/sessions/added-{FORGED}").status == 502)
