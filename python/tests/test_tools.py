"""Functions of the host that guests call."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any

import pytest
from conftest import in_threads, until

import isolet


def sandbox(server: isolet.Server, *tools: Any, **policy: Any) -> isolet.Sandbox:
    return isolet.Sandbox(server=server, tools=tools, **policy)


def test_guests_call_functions_with_values(server: isolet.Server) -> None:
    def echo(value: Any, *, times: int = 1) -> Any:
        """Says it again."""
        return [value] * times

    async def later(value: Any) -> Any:
        await asyncio.sleep(0)
        return (value, {value})

    with sandbox(server, echo, later).session() as session:
        assert session.eval("echo({'a': b'b'}, times=2)") == [{"a": b"b"}] * 2
        assert session.eval("later(5)") == [5, [5]]
        assert session.eval("echo.__doc__") == "Says it again."
        assert session.eval("import inspect; str(inspect.signature(echo))") == (
            "(value, *, times: int = 1)"
        )
        execution = session.run("[echo(i) for i in range(100)]")
        assert execution.usage.tool_calls == 100


def test_names_may_differ_from_those_of_the_functions(server: isolet.Server) -> None:
    tools = {"_one": lambda: 1, "two": isolet.tool(lambda: 2, name="other", doc="Two.")}
    with isolet.Sandbox(server=server, tools=tools).session() as session:
        assert session.eval("[_one(), two(), two.__doc__]") == [1, 2, "Two."]


def test_what_a_tool_raises_the_guest_gets(server: isolet.Server) -> None:
    class Custom(Exception):
        pass

    class Broken(Exception):
        def __str__(self) -> str:
            raise ZeroDivisionError

    errors = [
        ValueError("größe"),
        KeyError("k"),
        Custom("mine"),
        Broken(),
        StopIteration("stop"),
        ValueError("\ud800"),
        OSError(2, "no such file"),
    ]

    def fail(number: int) -> None:
        raise errors[number]

    def strange() -> object:
        return {"a": [object()]}

    def no_text() -> str:
        return "\ud800"

    code = (
        "try:\n    {}\nexcept BaseException as e:\n"
        "    r = type(e).__name__, str(e), isinstance(e, {})\nr"
    )
    with sandbox(server, fail, strange, no_text).session() as session:

        def seen(call: str, kind: str) -> Any:
            return session.eval(code.format(call, kind))

        assert seen("fail(0)", "ValueError") == ["ValueError", "größe", True]
        assert seen("fail(1)", "KeyError") == ["KeyError", "'k'", True]
        assert "mine" in seen("fail(2)", "RuntimeError")[1]
        assert seen("fail(2)", "RuntimeError")[2]
        assert "cannot be made" in seen("fail(3)", "RuntimeError")[1]
        assert "stop" in seen("fail(4)", "Exception")[1]
        assert seen("fail(5)", "ValueError") == ["ValueError", "?", True]
        assert "no such file" in seen("fail(6)", "OSError")[1]
        name, text, _ = seen("strange()", "TypeError")
        assert name == "TypeError"
        assert "`strange()['a'][0]` is an object" in text
        assert "surrogate" in seen("no_text()", "TypeError")[1]


def test_arguments_are_checked(server: isolet.Server) -> None:
    called: list[object] = []

    def search(query: str, limit: int = 1) -> None:
        called.append((query, limit))

    with sandbox(server, search).session() as session:
        for call in ("search(5)", "search()", "search('a', 'b')", "search('a', no=1)"):
            execution = session.run(call)
            assert execution.error is not None
            assert execution.error.type == "TypeError"
    assert called == []


def test_tools_run_in_the_thread_and_context_of_the_caller(server: isolet.Server) -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    threads: list[threading.Thread] = []

    def read() -> str:
        threads.append(threading.current_thread())
        before = variable.get()
        variable.set("by the tool")
        return before

    async def read_later() -> str:
        return variable.get()

    with sandbox(server, read, read_later).session() as session:
        variable.set("by the caller")
        assert session.eval("read()") == "by the caller"
        assert variable.get() == "by the tool"
        assert session.eval("read_later()") == "by the tool"
        assert threads == [threading.current_thread()]

        def work(index: int) -> object:
            variable.set(str(index))
            return session.eval("read()")

        assert in_threads(1, work) == ["0"]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_calls_at_once_run_at_once_and_have_the_context(server: isolet.Server, kind: str) -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    barrier = threading.Barrier(4)
    together = 0
    event = asyncio.Event()

    def meet(x: int) -> list[object]:
        barrier.wait(30)
        return [x, variable.get()]

    async def meet_later(x: int) -> list[object]:
        nonlocal together
        together += 1
        if together == 4:
            event.set()
        await asyncio.wait_for(event.wait(), 30)
        return [x, variable.get()]

    variable.set("set")
    tool = isolet.tool(meet if kind == "sync" else meet_later, name="meet")
    with sandbox(server, tool).session() as session:
        found = session.eval("meet.map(range(4))")
        assert found == [[x, "set"] for x in range(4)]


def test_a_call_in_a_tool_runs_another_session(server: isolet.Server) -> None:
    with isolet.Sandbox(server=server).session() as inner:

        def ask(code: str) -> Any:
            return inner.eval(code)

        with sandbox(server, ask).session() as outer:
            assert outer.eval("ask('40 + 2')") == 42

            def again() -> Any:
                return outer.eval("1")

            outer.register(again)
            error = outer.run("again()").error
            assert error is not None
            assert "busy" in error.message.lower()


@pytest.mark.parametrize(
    "error",
    [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError()],
    ids=repr,
)
@pytest.mark.parametrize("kind", ["sync", "async", "thread"])
def test_an_exception_that_is_none_ends_the_run_and_goes_on(
    server: isolet.Server, error: BaseException, kind: str
) -> None:
    leave = threading.Event()

    def fail() -> None:
        leave.set()
        raise error

    async def fail_later() -> None:
        raise error

    def wait() -> None:
        # It has this thread, so that the exception comes from another one.
        leave.wait(30)

    tool = isolet.tool(fail_later if kind == "async" else fail, name="fail")
    calls = "fail()" if kind != "thread" else "await asyncio.gather(wait.aio(), fail.aio())"
    code = f"import asyncio\ntry:\n    {calls}\nexcept Exception: pass\nwhile True: pass"
    with sandbox(server, tool, wait).session() as session:
        session.run("kept = 1")
        with pytest.raises(type(error)) as caught:
            session.run(code)
        assert caught.value is error
        assert session.eval("kept") == 1


def test_a_tool_that_blocks_does_not_keep_a_run_from_ending(server: isolet.Server) -> None:
    entered, leave = threading.Event(), threading.Event()
    results: list[isolet.Execution] = []

    def block() -> str:
        entered.set()
        leave.wait(30)
        return "late"

    limits = isolet.Limits(host_time=0.2)
    with sandbox(server, block, limits=limits).session() as session:

        def work(index: int) -> object:
            if index == 0:
                results.append(session.run("kept = 1\nblock()"))
                return None
            assert entered.wait(30)
            # The guest is free again while the tool still blocks.
            with_limit = isolet.run("2", server=server)
            until(lambda: _is_free(session))
            leave.set()
            return with_limit.value

        assert in_threads(2, work)[1] == 2
        assert results[0].status == "timeout"
        assert session.eval("kept") == 1


def _is_free(session: isolet.Session) -> bool:
    try:
        session.set({"free": True})
    except isolet.Busy:
        return False
    return True


def test_a_call_may_take_its_time_only(server: isolet.Server) -> None:
    cancelled = threading.Event()

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    tool = isolet.tool(forever, timeout=0.1)
    with sandbox(server, tool).session() as session:
        execution = session.run("forever()")
        assert execution.error is not None
        assert execution.error.type == "TimeoutError"
        assert cancelled.wait(30)
        assert session.eval("1") == 1


def test_coroutines_that_nobody_waits_for_have_ended_when_the_run_has(
    server: isolet.Server,
) -> None:
    events: list[str] = []

    async def forever() -> None:
        events.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            events.append("ended")

    limits = isolet.Limits(host_time=0.2)
    with sandbox(server, forever, limits=limits).session() as session:
        session.run(
            "import asyncio\nt = asyncio.ensure_future(forever.aio())\nawait asyncio.sleep(0.1)"
        )
        assert events == ["begun", "ended"]
        events.clear()
        assert session.run("forever()").status == "timeout"
        assert events == ["begun", "ended"]


def test_the_time_in_tools_is_not_the_guests(server: isolet.Server) -> None:
    release = threading.Event()

    def slow() -> None:
        release.wait(0.5)

    with sandbox(server, slow).session() as session:
        execution = session.run("slow()\n5", timeout=0.3)
        assert execution.value == 5
        assert execution.usage.host_time >= 0.4


def test_a_tool_may_be_called_so_often_only(server: isolet.Server) -> None:
    tool = isolet.tool(lambda: 1, name="one", max_calls=2)
    with sandbox(server, tool).session() as session:
        assert session.eval("[one(), one()]") == [1, 1]
        assert session.run("one()").error is not None


def test_an_async_tool_is_awaited_by_the_guest(server: isolet.Server) -> None:
    tool = isolet.tool(lambda x: x + 1, name="add", style="async")
    with sandbox(server, tool).session() as session:
        assert session.eval("await add(1)") == 2
        assert session.eval("import inspect; inspect.iscoroutinefunction(add)") is True


def test_every_kind_of_parameter_can_be_passed(server: isolet.Server) -> None:
    def every(a: int, /, b: int, *c: int, d: int = 4, **e: int) -> object:
        return [a, b, c, d, e]

    with sandbox(server, every).session() as session:
        assert session.eval("every(1, 2, 3, 3, d=5, x=6)") == [1, 2, [3, 3], 5, {"x": 6}]
        assert session.eval("every(1, b=2)") == [1, 2, [], 4, {}]


def test_large_values_pass_through_tools(server: isolet.Server) -> None:
    data = b"x" * (5 << 20)

    def take(value: bytes) -> int:
        return len(value)

    def give() -> bytes:
        return data

    with sandbox(server, take, give).session() as session:
        assert session.eval("take(give())") == len(data)


def test_a_function_that_returns_a_coroutine_is_a_coroutine_function(
    server: isolet.Server,
) -> None:
    async def later() -> int:
        return 5

    with sandbox(server, isolet.tool(lambda: later(), name="later")).session() as session:
        assert session.eval("later()") == 5


def test_runs_of_a_map_call_tools(server: isolet.Server) -> None:
    threads: set[threading.Thread] = set()

    def double(x: int) -> int:
        threads.add(threading.current_thread())
        return 2 * x

    runs = sandbox(server, double).map([f"double({i})" for i in range(6)], concurrency=2)
    assert [execution.value for execution in runs] == [0, 2, 4, 6, 8, 10]
    assert threading.current_thread() in threads


def test_a_tool_of_a_map_that_is_no_exception_ends_it(server: isolet.Server) -> None:
    def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        list(sandbox(server, leave).map(["1", "leave()", "while True: pass"], concurrency=3))
    assert isolet.run("1", server=server).value == 1
