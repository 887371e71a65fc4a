"""Ctrl-C, in the main thread and its tools, and exceptions of other signal handlers."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from conftest import until

import isolet

FAKE = pathlib.Path(__file__).with_name("fake_server.py")


@pytest.fixture(autouse=True)
def _handler() -> Iterator[None]:
    """Python's own handler is there before and after each test."""
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def press(signum: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), signum)


def press_when(*events: threading.Event) -> threading.Thread:
    """Presses Ctrl-C after each of the events, from another thread."""

    def work() -> None:
        for event in events:
            assert event.wait(30)
            press()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_ctrl_c_interrupts_the_guest_and_the_session_goes_on(session: isolet.Session) -> None:
    session.run("kept = 1")
    going = threading.Event()
    # A tool in a coroutine does not run in this thread: Ctrl-C comes while it waits.
    pressing = press_when(going)

    async def begin() -> None:
        going.set()

    session.register(begin)
    with pytest.raises(KeyboardInterrupt) as caught:
        session.run("print('hi')\nbegin()\nwhile True: pass")
    pressing.join()
    assert isinstance(caught.value, isolet.Interrupted)
    execution = caught.value.execution
    assert execution is not None
    assert execution.status == "interrupted"
    assert execution.stdout == "hi\n"
    assert session.eval("kept") == 1


STUBBORN = """
while True:
    try:
        begin()
        while True: pass
    except BaseException:
        pass
"""


def test_ctrl_c_ends_the_session_of_a_guest_that_does_not_stop(server: isolet.Server) -> None:
    going = threading.Event()

    async def begin() -> None:
        going.set()

    sandbox = isolet.Sandbox(server=server, tools=[begin], limits=isolet.Limits(grace=0.1))
    with sandbox.session() as session:
        pressing = press_when(going)
        with pytest.raises(isolet.Interrupted) as caught:
            session.run(STUBBORN)
        pressing.join()
        assert caught.value.execution is not None
        assert not session.alive


def test_a_second_ctrl_c_ends_the_session_at_once(server: isolet.Server) -> None:
    events = [threading.Event(), threading.Event()]
    calls = iter(events)

    async def begin() -> None:
        # The second call comes when the guest has caught the first interrupt.
        next(calls).set()

    limits = isolet.Limits(grace=25)
    with isolet.Sandbox(server=server, tools=[begin], limits=limits).session() as session:
        pressing = press_when(*events)
        with pytest.raises(isolet.Interrupted) as caught:
            session.run(STUBBORN)
        pressing.join()
        assert caught.value.execution is None
        assert not session.alive
    assert isolet.run("40 + 2", server=server).value == 42


def test_ctrl_c_in_a_tool_is_the_tools(session: isolet.Session) -> None:
    seen: list[object] = []

    def wait() -> str:
        seen.append(signal.getsignal(signal.SIGINT))
        try:
            press()
            threading.Event().wait(30)
        except KeyboardInterrupt:
            seen.append("caught")
        return "done"

    session.register(wait)
    assert session.eval("wait()") == "done"
    assert seen == [signal.default_int_handler, "caught"]


def test_ctrl_c_that_a_tool_does_not_catch_ends_the_run(session: isolet.Session) -> None:
    def wait() -> None:
        press()
        threading.Event().wait(30)

    session.register(wait)
    session.run("kept = 1")
    with pytest.raises(KeyboardInterrupt):
        session.run("wait()\nwhile True: pass")
    assert session.eval("kept") == 1


def test_ctrl_c_in_a_callback_ends_the_run(session: isolet.Session) -> None:
    def show(text: str) -> None:
        press()
        threading.Event().wait(30)

    with pytest.raises(KeyboardInterrupt):
        session.run("print('a', flush=True)\nwhile True: pass", on_stdout=show)
    assert session.eval("1") == 1


def test_ctrl_c_ends_the_waiting_for_an_answer() -> None:
    with isolet.Server(FAKE, env={**os.environ, "FAKE": "quiet"}) as server:
        session = isolet.Sandbox(server=server).session()

        def work() -> None:
            until(lambda: signal.getsignal(signal.SIGINT) is not signal.default_int_handler)
            press()

        for use in (session.variables, lambda: session["x"], lambda: session.isolation):
            pressing = threading.Thread(target=work)
            pressing.start()
            with pytest.raises(KeyboardInterrupt):
                use()
            pressing.join()


def test_ctrl_c_ends_the_runs_of_a_map(server: isolet.Server) -> None:
    going = threading.Event()

    async def begin() -> None:
        going.set()

    sandbox = isolet.Sandbox(server=server, tools=[begin])
    pressing = press_when(going)
    with pytest.raises(KeyboardInterrupt):
        list(sandbox.map(["1", "begin()\nwhile True: pass", "while True: pass"], concurrency=3))
    pressing.join()
    assert sandbox.run("1").value == 1


def test_a_handler_of_the_program_stays(session: isolet.Session) -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda signum, frame: seen.append(signum))
    try:
        going = threading.Event()

        async def begin() -> None:
            going.set()

        session.register(begin)
        pressing = press_when(going)
        assert session.run("begin()\nwhile True: pass", timeout=0.5).status == "timeout"
        pressing.join()
        assert seen == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


class Alarm(Exception):
    """What the handler of a program raises, such as one that limits times by `SIGALRM`."""


def test_a_signal_handler_that_raises_ends_the_run_and_nothing_else(
    session: isolet.Session,
) -> None:
    def ring(signum: int, frame: object) -> None:
        raise Alarm

    session.run("kept = 1")
    going = threading.Event()

    async def begin() -> None:
        going.set()

    session.register(begin)

    def work() -> None:
        assert going.wait(30)
        press(signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, ring)
    pressing = threading.Thread(target=work)
    pressing.start()
    try:
        with pytest.raises(Alarm):
            session.run("begin()\nwhile True: pass")
    finally:
        pressing.join()
        signal.signal(signal.SIGUSR1, before)
    assert session.eval("kept") == 1


def test_signals_at_any_time_lose_no_answer(session: isolet.Session) -> None:
    def count(signum: int, frame: object) -> None:
        seen.append(signum)

    seen: list[int] = []
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(0.0002):
            press(signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, count)
    pressing = threading.Thread(target=work)
    pressing.start()
    try:
        for number in range(500):
            assert session.run("n + 1", inputs={"n": number}).value == number + 1
    finally:
        stop.set()
        pressing.join()
        signal.signal(signal.SIGUSR1, before)
    assert seen


def test_ctrl_c_at_any_time_loses_no_answer(session: isolet.Session) -> None:
    stop = threading.Event()
    rest = threading.Semaphore(0)
    presses = 0

    def work() -> None:
        nonlocal presses
        # Each press at another moment of a run.
        while rest.acquire() and not stop.is_set():
            press()
            presses += 1

    def wait_for_press(number: int) -> None:
        # Two presses in one run would end the session.
        while presses <= number:
            with contextlib.suppress(KeyboardInterrupt):
                until(lambda: presses > number)

    pressing = threading.Thread(target=work)
    pressing.start()
    try:
        for number in range(300):
            rest.release()
            try:
                try:
                    assert session.run("n + 1", inputs={"n": number}).value == number + 1
                except isolet.Interrupted as error:
                    assert error.execution is not None
                    assert error.execution.value in (number + 1, None)
            except KeyboardInterrupt:
                # Between two runs.
                pass
            wait_for_press(number)
    finally:
        stop.set()
        while True:
            try:
                rest.release()
                pressing.join()
                break
            except KeyboardInterrupt:
                continue
    assert session.eval("40 + 2") == 42


GROUP = """
import isolet, os, signal, threading

going = threading.Event()

async def begin():
    going.set()

def work():
    going.wait(30)
    os.killpg(0, signal.SIGINT)

session = isolet.Sandbox(tools=[begin]).session()
session.run("kept = 42")
threading.Thread(target=work).start()
try:
    session.run("begin()\\nwhile True: pass")
except isolet.Interrupted as error:
    print(error.execution.status, session.eval("kept"))
"""


def test_ctrl_c_of_a_terminal_which_the_server_gets_too_leaves_the_session() -> None:
    done = subprocess.run(
        [sys.executable, "-c", GROUP],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        start_new_session=True,
    )
    assert done.stdout == "interrupted 42\n", done.stderr
