"""The asynchronous API: runs, sessions, streams, cancellation, ends."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Coroutine
from typing import Any

import pytest
from conftest import until

import isolet
from isolet import aio


def go(main: Coroutine[Any, Any, None]) -> None:
    """Runs a test on a loop that has a server of its own."""
    asyncio.run(asyncio.wait_for(main, 50))


def test_code_runs_and_sessions_keep_their_state() -> None:
    async def main() -> None:
        assert (await aio.run("40 + x", inputs={"x": 2})).value == 42
        sandbox = aio.Sandbox()
        session = await sandbox.session(inputs={"x": 1})
        assert session.alive
        assert (await session.run("x += 1; x")).value == 2
        assert (await session.sh("echo a | tr a b")).stdout == "b\n"
        assert await session.eval("x") == 2
        with pytest.raises(isolet.GuestError, match="ZeroDivisionError"):
            await session.eval("1/0")
        assert (await session.run("while True: pass", timeout=0.1)).status == "timeout"
        await session.reset()
        assert not await session.contains("x")
        await session.close()
        assert not session.alive

    go(main())


def test_a_closed_session_is_closed() -> None:
    async def main() -> None:
        session = await aio.Sandbox().session()
        await session.close()
        for use in (session.run("1"), session.reset(), session.get("x"), session.interrupt()):
            with pytest.raises(isolet.SessionClosedError, match=r"was closed .*sandbox\.session"):
                await use
        session["x"] = 1
        with pytest.raises(isolet.SessionClosedError):
            await session.run("1")
        assert not session.alive

    go(main())


def test_variables_and_files() -> None:
    async def main() -> None:
        async with aio.Sandbox().session() as session:
            session["x"] = {"a": (1, 2)}
            assert await session["x"] == {"a": [1, 2]}
            assert await session.contains("x")
            assert await session.delete("x")
            assert not await session.delete("x")
            assert await session.get("x", 5) == 5
            with pytest.raises(KeyError, match="x"):
                await session["x"]
            await session.set({"y": 1})
            assert "y" in [variable.name for variable in await session.variables()]
            await session.files.put("a", "b")
            assert await session.files.get("a") == b"b"
            assert "a" in [entry.name for entry in await session.files.list()]
            with pytest.raises(FileNotFoundError, match="no such directory"):
                await session.files.list("none")
            assert await session.files.remove("a")
            with pytest.raises(FileNotFoundError):
                await session.files.get("a")
            assert (await session.isolation()).kind in ("process", "thread")

    go(main())


def test_an_assignment_that_fails_is_raised_by_what_follows() -> None:
    async def main() -> None:
        limits = isolet.Limits(value_bytes=1000)
        async with aio.Sandbox(limits=limits).session() as session:
            with pytest.raises(isolet.TransferError, match="`x` is a builtin"):
                session["x"] = print
            session["x"] = "a" * 2000
            with pytest.raises(isolet.TransferError, match="1000"):
                await session.run("1")
            assert await session.eval("1") == 1

    go(main())


def test_streams_and_callbacks() -> None:
    async def main() -> None:
        async with aio.Sandbox().session() as session:
            items = [item async for item in session.stream("print('a')\n5")]
            assert [type(item) for item in items] == [isolet.Output, isolet.Execution]
            seen: list[str] = []
            await session.run("print('a')", on_stdout=seen.append)
            assert seen == ["a\n"]
            async for _ in session.stream("while True: print('x' * 1000)"):
                break
            gc.collect()
            assert await session.eval("1") == 1
            async with session.stream("while True: print('x' * 1000)") as stream:
                await stream.__anext__()
            assert await session.eval("1") == 1
            with pytest.raises(LookupError):
                await session.run("print('a', flush=True)\nwhile True: pass", on_stdout=refuse)
            assert await session.eval("1") == 1

    def refuse(text: str) -> None:
        raise LookupError

    go(main())


def test_64_sessions_in_one_loop_and_no_thread() -> None:
    async def work(sandbox: aio.Sandbox, index: int) -> int:
        async with sandbox.session(inputs={"n": index}) as session:
            for number in range(5):
                value = await session.eval("await double(n) + x", inputs={"x": number})
                assert value == 2 * index + number
            return await session.eval("n")

    async def double(x: int) -> int:
        await asyncio.sleep(0)
        return 2 * x

    async def main() -> None:
        threads = threading.active_count()
        sandbox = aio.Sandbox(tools=[isolet.tool(double, style="async")])
        found = await asyncio.gather(*(work(sandbox, index) for index in range(64)))
        assert found == list(range(64))
        assert threading.active_count() == threads

    go(main())


def test_runs_of_many_codes_come_in_their_order() -> None:
    async def main() -> None:
        sandbox = aio.Sandbox()
        inputs = [{"y": 100 * i} for i in range(9)]
        codes = [f"import time; time.sleep({0.05 * (i % 3)}); {i} + y" for i in range(9)]
        found = [each.value async for each in sandbox.map(codes, inputs, concurrency=3)]
        assert found == [101 * i for i in range(9)]
        async with sandbox.map(["1", "while True: pass"], concurrency=2) as runs:
            assert (await runs.__anext__()).value == 1
        assert (await sandbox.run("2")).value == 2

    go(main())


async def wait_for_guest(event: asyncio.Event) -> None:
    await asyncio.wait_for(event.wait(), 30)


def test_a_cancelled_run_leaves_the_session_if_the_guest_stops() -> None:
    async def main() -> None:
        going = asyncio.Event()

        async def begin() -> None:
            going.set()

        async with aio.Sandbox(tools=[begin]).session() as session:
            await session.run("kept = 1")
            task = asyncio.create_task(session.run("begin()\nwhile True: pass"))
            await wait_for_guest(going)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert session.alive
            assert await session.eval("kept") == 1
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(session.run("while True: pass"), 0.1)
            assert await session.eval("kept") == 1

    go(main())


def test_a_cancelled_run_ends_the_session_if_the_guest_goes_on() -> None:
    async def main() -> None:
        going = asyncio.Event()

        async def begin() -> None:
            going.set()

        # The interrupt may come before `begin` has returned.
        stubborn = (
            "while True:\n  try:\n    begin()\n    while True: pass\n  except BaseException: pass"
        )
        sandbox = aio.Sandbox(tools=[begin], limits=isolet.Limits(grace=0.1))
        session = sandbox.session()
        task = asyncio.create_task(session.run(stubborn))
        await wait_for_guest(going)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(isolet.SessionClosedError):
            await session.run("1")

    go(main())


def test_a_second_cancellation_ends_the_session_at_once() -> None:
    async def main() -> None:
        calls = [asyncio.Event(), asyncio.Event()]
        following = iter(calls)

        async def begin() -> None:
            next(following).set()

        stubborn = (
            "while True:\n  try:\n    begin()\n    while True: pass\n  except BaseException: pass"
        )
        sandbox = aio.Sandbox(tools=[begin], limits=isolet.Limits(grace=25))
        session = sandbox.session()
        task = asyncio.create_task(session.run(stubborn))
        for call in calls:
            await wait_for_guest(call)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not session.alive

    go(main())


def test_a_run_that_is_cancelled_before_it_began_never_runs() -> None:
    async def main() -> None:
        called: list[int] = []
        sandbox = aio.Sandbox(tools=[isolet.tool(lambda: called.append(1), name="call")])
        session = sandbox.session()
        task = asyncio.create_task(session.run("call()\nwhile True: pass"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert called == []
        await session.close()

    go(main())


def test_every_task_learns_that_the_server_was_killed() -> None:
    async def main() -> None:
        async with aio.Server() as server:
            going = asyncio.Semaphore(0)

            async def begin() -> None:
                going.release()

            sandbox = aio.Sandbox(server=server, tools=[begin])
            tasks = [
                asyncio.create_task(sandbox.session().run("begin()\nwhile True: pass"))
                for _ in range(8)
            ]
            for _ in tasks:
                await asyncio.wait_for(going.acquire(), 30)
            assert server.pid is not None
            os.kill(server.pid, signal.SIGKILL)
            for found in await asyncio.gather(*tasks, return_exceptions=True):
                assert isinstance(found, isolet.ServerDiedError)
                assert "SIGKILL" in str(found)
            assert (await sandbox.run("40 + 2")).value == 42

    go(main())


def test_large_values_cross_while_others_run() -> None:
    async def main() -> None:
        data = b"x" * (20 << 20)
        sandbox = aio.Sandbox()

        async def small() -> None:
            async with sandbox.session() as session:
                for number in range(50):
                    assert (await session.run("n", inputs={"n": number})).value == number

        async def large() -> None:
            async with sandbox.session() as session:
                for _ in range(2):
                    assert (await session.run("d", inputs={"d": data})).value == data

        await asyncio.gather(large(), large(), small(), small())

    go(main())


def test_each_loop_has_a_server_of_its_own_which_ends_with_it() -> None:
    pids: list[int] = []
    sandbox = aio.Sandbox()

    async def main() -> None:
        assert (await sandbox.run("40 + 2")).value == 42
        server = aio._server.default_server()  # type: ignore[attr-defined]
        pids.append(server.pid)

    descriptors = len(os.listdir("/proc/self/fd"))
    asyncio.run(main())
    asyncio.run(main())
    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    # Without a word to its asynchronous generators.
    loop.close()
    del loop
    gc.collect()
    assert len(set(pids)) == 3
    until(lambda: not any(map(is_running, pids)))
    assert len(os.listdir("/proc/self/fd")) == descriptors


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_server_belongs_to_a_loop() -> None:
    server = aio.Server()

    async def use() -> None:
        await aio.run("1", server=server)

    async def main() -> None:
        await use()
        error = await asyncio.to_thread(in_another_loop)
        assert isinstance(error, isolet.ConfigError)

    def in_another_loop() -> BaseException | None:
        try:
            asyncio.run(use())
        except BaseException as error:
            return error
        return None

    go(main())
    # The loop has ended.
    go(use())


QUIET = """
import asyncio
from isolet import aio

async def main():
    session = aio.Sandbox().session()
    print(await session.eval("40 + 2"))
    asyncio.create_task(session.run("while True: pass"))
    await asyncio.sleep(0)

asyncio.run(main())
"""


def test_a_program_keeps_its_variables_if_it_is_to() -> None:
    async def main() -> None:
        session = await aio.Sandbox().session()
        await session.run("kept = 41", program=True)
        assert await session.get("kept") is None
        await session.run("kept = 41", program=True, keep_variables=True)
        async with session.stream("kept += 1", program=True, keep_variables=True) as items:
            assert [item async for item in items][-1].status == "completed"
        assert await session.get("kept") == 42

    go(main())


def test_a_program_ends_without_a_word_whatever_it_leaves_behind() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", QUIET],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout == "42\n"


def test_dropped_sessions_are_closed() -> None:
    async def main() -> None:
        async with aio.Server(max_sessions=20) as server:
            sandbox = aio.Sandbox(server=server)
            for number in range(100):
                session = sandbox.session()
                if number % 10 == 0:
                    assert await session.eval("1") == 1
            del session
            assert (await sandbox.run("1")).value == 1

    go(main())
