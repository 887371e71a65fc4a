"""Tools of the asynchronous API."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any

import pytest
from parameter_ids import shown
from test_aio import go

import isolet
from isolet import aio


def test_coroutines_run_on_the_loop_and_functions_in_threads() -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    loops: list[Any] = []
    threads: list[threading.Thread] = []

    async def later() -> str:
        loops.append(asyncio.get_running_loop())
        return variable.get()

    def now() -> str:
        threads.append(threading.current_thread())
        return variable.get()

    async def main() -> None:
        async with aio.Sandbox(tools=[later, now]).session() as session:
            variable.set("set")
            assert await session.eval("later(), now()") == ["set", "set"]
            assert loops == [asyncio.get_running_loop()]
            assert threads != [threading.current_thread()]

    go(main())


def test_a_function_that_blocks_does_not_block_the_loop() -> None:
    leave = threading.Event()

    def block() -> str:
        assert leave.wait(30)
        return "done"

    async def main() -> None:
        sandbox = aio.Sandbox(tools=[block])
        async with sandbox.session() as first, sandbox.session() as second:
            task = asyncio.create_task(first.eval("block()"))
            assert await second.eval("40 + 2") == 42
            leave.set()
            assert await task == "done"

    go(main())


def test_calls_at_once_run_at_once() -> None:
    async def main() -> None:
        together = 0
        event = asyncio.Event()

        async def meet(x: int) -> int:
            nonlocal together
            together += 1
            if together == 8:
                event.set()
            await event.wait()
            return x

        async with aio.Sandbox(tools=[meet]).session() as session:
            assert await session.eval("meet.map(range(8))") == list(range(8))

    go(main())


def test_what_a_tool_raises_the_guest_gets() -> None:
    def stop() -> None:
        raise StopIteration("stop")

    async def wrong() -> object:
        return object()

    async def missing() -> None:
        raise KeyError("k")

    async def main() -> None:
        async with aio.Sandbox(tools=[stop, wrong, missing]).session() as session:
            for code, text in (("stop()", "stop"), ("wrong()", "`wrong()`"), ("missing()", "'k'")):
                error = (await session.run(code)).error
                assert error is not None
                assert text in error.message

    go(main())


@pytest.mark.parametrize(
    "error",
    [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError()],
    ids=shown,
)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_an_exception_that_is_none_ends_the_run_and_goes_on(
    error: BaseException, kind: str
) -> None:
    def fail() -> None:
        raise error

    async def fail_later() -> None:
        raise error

    tool = isolet.tool(fail_later if kind == "async" else fail, name="fail")

    async def main() -> None:
        async with aio.Sandbox(tools=[tool]).session() as session:
            await session.run("kept = 1")
            try:
                await session.run("try:\n    fail()\nexcept Exception: pass\nwhile True: pass")
            except BaseException as found:
                assert type(found) is type(error)
            else:
                raise AssertionError("the run went on")
            assert await session.eval("kept") == 1

    go(main())


def test_coroutines_that_nobody_waits_for_have_ended_when_the_run_has() -> None:
    events: list[str] = []

    async def forever() -> None:
        events.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            events.append("ended")

    async def main() -> None:
        limits = isolet.Limits(host_time=0.2)
        async with aio.Sandbox(tools=[forever], limits=limits).session() as session:
            assert (await session.run("forever()")).status == "timeout"
            assert events == ["begun", "ended"]
            events.clear()
            task = asyncio.create_task(session.run("forever()"))
            while not events:
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert events == ["begun", "ended"]

    go(main())


def test_a_tool_may_run_another_session() -> None:
    async def main() -> None:
        async with aio.Sandbox().session() as inner:

            async def ask(code: str) -> Any:
                return await inner.eval(code)

            async with aio.Sandbox(tools=[ask]).session() as outer:
                assert await outer.eval("ask('40 + 2')") == 42

    go(main())


def test_accesses_are_told() -> None:
    events: list[isolet.AuditEvent] = []

    def ping() -> str:
        return "pong"

    async def main() -> None:
        async with aio.Sandbox(tools=[ping], on_audit=events.append).session() as session:
            assert await session.eval("ping()") == "pong"
        assert [(event["access"], event["session"]) for event in events] == [("tool", session.id)]

    go(main())
