"""The native routes of `isolet serve --listen` that pause, copy and keep sessions."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import requests
from node_process import serving, started

SECONDS = 60


class Node:
    """A client of a node."""

    def __init__(self, address: str, **headers: str):
        self.address, self.headers = address, headers

    def ask(self, request: str, **body: object) -> tuple[int, Any]:
        method, route = request.split()
        url = self.address + route
        answer = requests.request(method, url, json=body, headers=self.headers, timeout=SECONDS)
        return answer.status_code, answer.json() if answer.content else None

    def made(self, request: str, **body: object) -> Any:
        status, made = self.ask(request, **body)
        assert status in (200, 201), made
        return made

    def run(self, session: str, code: str) -> Any:
        return self.made(f"POST /v1/sessions/{session}/runs", code=code).get("value")

    def sessions(self) -> int:
        return self.made("GET /v1/node")["sessions"]


def configured(tmp_path: Path, more: str = "") -> str:
    path = tmp_path / "node.toml"
    path.write_text(f'max_sessions = 3\n[store]\ndirectory = "{tmp_path}/store"\n{more}')
    return str(path)


def kept(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "store").glob("*/*.session"))


def test_a_paused_session_leaves_its_place_and_goes_on_where_it_was(tmp_path):
    with serving("--config", configured(tmp_path)) as address:
        node = Node(address)
        session = node.made("POST /v1/sessions", metadata=["mine"])
        place = f"/v1/sessions/{session['id']}"
        node.run(session["id"], "x = [1]; open('f', 'w').write('text')")
        paused = node.made(f"POST {place}/pause")
        assert (paused["is_paused"], paused["metadata"], node.sessions()) == (True, ["mine"], 0)
        assert node.made(f"POST {place}/pause")["is_paused"] is True
        (file,) = kept(tmp_path)
        assert file.stat().st_mode & 0o777 == 0o600
        for request in ("runs", "reset", "interrupt", "fork", "snapshots"):
            body = {"code": "x"} if request == "runs" else {}
            status, problem = node.ask(f"POST {place}/{request}", **body)
            assert (status, problem["code"]) == (409, "paused"), request
        others = [node.made("POST /v1/sessions")["id"] for _ in range(3)]
        status, problem = node.ask(f"POST {place}/resume")
        assert (status, problem["code"]) == (503, "capacity")
        assert node.ask(f"DELETE /v1/sessions/{others[0]}")[0] == 204
        resumed = Node(address, **{"x-session-token": session["token"]})
        shown = resumed.made(f"POST {place}/resume", ttl=100)
        assert "is_paused" not in shown
        assert 90 < shown["ttl"] <= 100
        assert node.run(session["id"], "x.append(2); [x, open('f').read()]") == [[1, 2], "text"]
        assert kept(tmp_path) == []
        assert node.made(f"POST {place}/resume")["id"] == session["id"]


def test_what_is_ended_while_it_is_paused_leaves_no_file(tmp_path):
    with serving("--config", configured(tmp_path)) as address:
        node = Node(address)
        session = node.made("POST /v1/sessions")["id"]
        node.made(f"POST /v1/sessions/{session}/pause")
        assert len(kept(tmp_path)) == 1
        assert node.ask(f"DELETE /v1/sessions/{session}")[0] == 204
        assert kept(tmp_path) == []
        assert node.ask(f"POST /v1/sessions/{session}/resume")[0] == 410
        node.made(f"POST /v1/sessions/{node.made('POST /v1/sessions')['id']}/pause")
    assert list((tmp_path / "store").iterdir()) == []


def test_a_session_that_cannot_be_saved_goes_on(tmp_path):
    with serving("--config", configured(tmp_path)) as address:
        node = Node(address)
        session = node.made("POST /v1/sessions")["id"]
        node.run(session, "import js; held = js.Object.new()")
        status, problem = node.ask(f"POST /v1/sessions/{session}/pause")
        assert (status, problem["code"]) == (422, "value")
        assert "held" in problem["detail"]
        assert node.run(session, "1 + 1") == 2
        assert kept(tmp_path) == []


@pytest.mark.parametrize("policy", ["", "[policy]\nforkable = 4\n"])
def test_a_fork_has_all_that_the_session_has_and_is_one_of_its_own(tmp_path, policy):
    with serving("--config", configured(tmp_path, policy)) as address:
        node = Node(address)
        session = node.made("POST /v1/sessions")["id"]
        node.run(session, "x = [1]")
        copy = node.made(f"POST /v1/sessions/{session}/fork", ttl=50)
        assert copy["ttl"] <= 50
        token = Node(address, **{"x-session-token": copy["token"]})
        assert token.run(copy["id"], "x.append(2); x") == [1, 2]
        assert node.run(session, "x") == [1]
        again = node.made(f"POST /v1/sessions/{copy['id']}/fork")["id"]
        assert node.run(again, "x") == [1, 2]
        status, problem = node.ask(f"POST /v1/sessions/{session}/fork")
        assert (status, problem["code"]) == (503, "capacity")
        assert kept(tmp_path) == []


def test_sessions_begin_as_a_snapshot_of_their_tenant(tmp_path):
    def tenant(name: str, quotas: str) -> str:
        digest = hashlib.sha256(name.encode()).hexdigest()
        return f'[tenants.{name}]\nkeys = ["sha256:{digest}"]\nquotas = {quotas}\n'

    more = tenant("a", "{ saved = 1, sessions = 3 }") + tenant("b", "{}")
    with serving("--config", configured(tmp_path, more)) as address:
        a, b = (Node(address, authorization=f"Bearer {key}") for key in "ab")
        session = a.made("POST /v1/sessions")["id"]
        a.run(session, "x = 1")
        snapshot = a.made(f"POST /v1/sessions/{session}/snapshots", name="one")
        assert (snapshot["session"], snapshot["name"]) == (session, "one")
        assert a.made("GET /v1/snapshots")["snapshots"] == [snapshot]
        status, problem = a.ask(f"POST /v1/sessions/{session}/pause")
        assert (status, problem["code"]) == (429, "quota")
        for _ in range(2):
            assert a.run(a.made("POST /v1/sessions", snapshot=snapshot["id"])["id"], "x") == 1
        assert b.made("GET /v1/snapshots")["snapshots"] == []
        assert b.ask("POST /v1/sessions", snapshot=snapshot["id"])[0] == 404
        assert b.ask(f"DELETE /v1/snapshots/{snapshot['id']}")[0] == 404
        assert a.ask(f"DELETE /v1/snapshots/{snapshot['id']}")[0] == 204
        assert kept(tmp_path) == []


def test_a_node_without_a_store_says_what_is_missing():
    with serving() as address:
        node = Node(address)
        place = f"/v1/sessions/{node.made('POST /v1/sessions')['id']}"
        for request in ("pause", "fork", "snapshots"):
            status, problem = node.ask(f"POST {place}/{request}")
            assert (status, problem["code"]) == (403, "denied")
            assert "[store]" in problem["detail"]


def test_a_start_removes_what_a_killed_one_has_left(tmp_path):
    config = configured(tmp_path)
    killed, address = started("--config", config)
    try:
        node = Node(address)
        session = node.made("POST /v1/sessions")["id"]
        node.made(f"POST /v1/sessions/{session}/pause")
    finally:
        killed.kill()
        killed.wait(SECONDS)
    assert len(kept(tmp_path)) == 1
    with serving("--config", config) as address:
        assert kept(tmp_path) == []
        assert Node(address).ask(f"POST /v1/sessions/{session}/resume")[0] == 410
