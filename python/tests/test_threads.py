"""Many threads on one connection, and finalizers of the program at any time."""

from __future__ import annotations

import gc
import threading
from typing import Any

from conftest import in_threads

import isolet


def test_threads_share_a_server(server: isolet.Server) -> None:
    def add(x: int, y: int) -> int:
        return x + y

    sandbox = isolet.Sandbox(server=server, tools=[add])

    def work(index: int) -> object:
        with sandbox.session(inputs={"n": index}) as session:
            for number in range(50):
                code = "add(n, x)" if number % 2 else "n + x"
                assert session.run(code, inputs={"x": number}).value == index + number
            return session.eval("n")

    assert in_threads(16, work) == list(range(16))


def test_large_and_small_values_cross_at_once(server: isolet.Server) -> None:
    sandbox = isolet.Sandbox(server=server)
    data = b"x" * (8 << 20)

    def work(index: int) -> object:
        with sandbox.session() as session:
            for _ in range(4 if index % 2 else 60):
                value = data if index % 2 else index
                assert session.run("v", inputs={"v": value}).value == value
        return None

    assert in_threads(8, work) == [None] * 8


def test_a_slow_tool_of_one_thread_does_not_delay_another(server: isolet.Server) -> None:
    entered, leave = threading.Event(), threading.Event()

    def wait() -> str:
        entered.set()
        assert leave.wait(30)
        return "done"

    sandbox = isolet.Sandbox(server=server, tools=[wait])

    def work(index: int) -> object:
        if index == 0:
            return sandbox.run("wait()").value
        assert entered.wait(30)
        value = sandbox.run("40 + 2").value
        leave.set()
        return value

    assert in_threads(2, work) == ["done", 42]


def test_one_session_can_be_used_by_many_threads_in_turns(session: isolet.Session) -> None:
    session["total"] = 0
    turn = threading.Lock()

    def work(index: int) -> object:
        for _ in range(20):
            with turn:
                session.run("total += 1")
        return None

    in_threads(8, work)
    assert session["total"] == 160


def test_many_threads_learn_why_a_sandbox_cannot_be_made(server: isolet.Server) -> None:
    sandbox = isolet.Sandbox(server=server, mounts={"/data": "/no/such/directory"})

    def work(index: int) -> object:
        return sandbox.session().isolation

    for found in in_threads(8, work):
        assert isinstance(found, isolet.IsoletError)
        assert "/no/such/directory" in str(found)


class Owner:
    """An object of a program that closes its session when it is collected, as many do."""

    def __init__(self, session: isolet.Session) -> None:
        self.session = session
        self.cycle = self

    def __del__(self) -> None:
        self.session.close()


def test_finalizers_may_close_sessions_at_any_time(server: isolet.Server) -> None:
    sandbox = isolet.Sandbox(server=server)

    def echo(value: Any) -> Any:
        return value

    before = gc.get_threshold()
    gc.set_threshold(20, 2, 2)
    try:
        with isolet.Sandbox(server=server, tools=[echo]).session() as session:
            for number in range(100):
                Owner(sandbox.session())
                value = [{"a": [number]} for _ in range(20)]
                assert session.run("echo(v)", inputs={"v": value}).value == value
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert isolet.run("40 + 2", server=server).value == 42
