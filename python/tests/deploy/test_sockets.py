"""WebSockets through HAProxy and nginx, with the configurations of `deploy/`."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from fleet import PROXIES, nodes, proxy
from node_process import SECONDS
from websockets.sync.client import connect

NAMES = ("n1", "n2", "n3")


@pytest.fixture(params=sorted(PROXIES))
def through(request):
    with nodes(*NAMES) as fleet, proxy(request.param, fleet) as through:
        yield through


@pytest.fixture
def open_socket(through):
    """Opens a socket at a path. What it sends and gets is JSON."""
    with contextlib.ExitStack() as sockets:

        def open_socket(path: str) -> Callable[..., Any]:
            socket = sockets.enter_context(connect(f"ws://{through[0].address}{path}"))

            def ask(**message: Any) -> Any:
                if message:
                    socket.send(json.dumps(message))
                return json.loads(socket.recv(SECONDS))

            return ask

        yield open_socket


def test_a_socket_to_a_session_is_its_nodes(through, open_socket):
    sessions = [through[1].create(inputs={"secret": number}) for number in range(6)]
    assert {session["node"] for session in sessions} == set(NAMES)
    for number, session in enumerate(sessions):
        ask = open_socket(f"/v1/sessions/{session['id']}/ws")
        assert ask(type="get", name="secret") == {"type": "ok", "value": number}


def test_each_socket_has_a_session_where_there_are_fewest(open_socket):
    tools = {"tools": [{"name": "ask"}]}
    asks = [open_socket("/v1/ws") for _ in range(6)]
    opened = [ask(type="session", policy=tools)["session"] for ask in asks]
    assert Counter(session.rpartition("-")[0] for session in opened) == dict.fromkeys(NAMES, 2)
    for number, ask in enumerate(asks):
        call = ask(type="run", code=f"print({number}, ask())")
        assert (call["type"], call["name"]) == ("tool_call", "ask")
        said = ask(type="tool_result", call_id=call["call_id"], value="answered")["text"]
        while (event := ask())["type"] != "end":
            said += event["text"]
        assert said == f"{number} answered\n"


def test_openenvs_sockets_pass(open_socket):
    asks = [open_socket("/openenv/coding/ws") for _ in range(6)]
    for number, ask in enumerate(asks):
        assert ask(type="reset", data={})["type"] == "observation"
        assert ask(type="step", data={"code": f"x = {number}"})["type"] == "observation"
    for number, ask in enumerate(asks):
        step = ask(type="step", data={"code": "print(x)"})
        assert step["data"]["observation"]["stdout"] == f"{number}\n"
