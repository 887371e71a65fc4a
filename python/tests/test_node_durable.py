"""`isolet.node`: durable sessions, whose node is killed and started again."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from node_process import SECONDS, started

import isolet
from isolet.node import Client


def test_a_durable_run_goes_on_with_another_client_after_its_node_was_killed(
    tmp_path: Path,
) -> None:
    args = ["--journals", str(tmp_path / "journals")]
    address = f"unix:{tmp_path}/node.sock"
    node, _ = started(*args, listen=address)
    asked: list[int] = []
    is_asked, may_answer = threading.Event(), threading.Event()

    def ask(number: int) -> int:
        asked.append(number)
        if number == 2 and len(asked) == 2:
            is_asked.set()
            assert may_answer.wait(SECONDS)
        return number * 10

    code = "first = ask(1)\nprint('first', first, flush=True)\nprint('second', ask(2))\nfirst"
    session = Client(address).session(tools=[ask], durable=True)
    heard: list[Any] = []
    lost: list[BaseException] = []

    def listen() -> None:
        try:
            heard.extend(session.stream(code))
        except isolet.ServerDiedError as error:
            lost.append(error)

    try:
        listening = threading.Thread(target=listen)
        listening.start()
        assert is_asked.wait(SECONDS)
        node.kill()
        node.wait(SECONDS)
        listening.join(SECONDS)
        assert len(lost) == 1
        node, _ = started(*args, listen=address)
        again = Client(address).attach(session.id, token=session.token, wait=SECONDS, tools=[ask])
        heard.extend(again.reattach(session.last_run, session.cursor, wait=SECONDS))
        assert "".join(str(each.text) for each in heard[:-1]) == "first 10\nsecond 20\n"
        assert heard[-1].value == 10
        assert asked == [1, 2, 2], "the call that waited is told to the new client"
        assert again.get("first") == 10
        assert (again.last_run, again.run("first + 1").value, again.last_run) == (1, 11, 2)
        again.close()
        with pytest.raises(isolet.SessionClosedError):
            Client(address).attach(session.id)
    finally:
        # Only now, so that its answer reaches no node.
        may_answer.set()
        node.kill()
        node.wait(SECONDS)


def test_the_result_of_a_run_that_was_started_waits_for_any_client(tmp_path: Path) -> None:
    args = ["--journals", str(tmp_path / "journals")]
    address = f"unix:{tmp_path}/node.sock"

    def ask(number: int) -> int:
        return number * 10

    node, _ = started(*args, listen=address)
    try:
        session = Client(address).start_run("print(ask(n))\nn", inputs={"n": 7}, tools=[ask])
        assert [item.text for item in session.reattach() if isinstance(item, isolet.Output)] == [
            "70\n"
        ]
        node.kill()
        node.wait(SECONDS)
        node, _ = started(*args, listen=address)
        again = Client(address).attach(session.id, token=session.token, wait=SECONDS)
        *_, execution = again.reattach(1, wait=SECONDS)
        assert isinstance(execution, isolet.Execution)
        assert (execution.stdout, execution.value) == ("70\n", 7)
        again.close()
        with pytest.raises(isolet.SessionClosedError):
            Client(address).attach(session.id)
    finally:
        node.kill()
        node.wait(SECONDS)
