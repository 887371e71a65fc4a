"""Functions of the host that guests call."""

from __future__ import annotations

import asyncio
import configparser
import contextvars
import decimal
import io
import json
import queue
import sqlite3
import subprocess
import sys
import threading
import urllib.error
import zoneinfo
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from conftest import in_threads, until
from parameter_ids import shown

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
        assert seen("fail(2)", "Exception") == ["Custom", "mine", True]
        assert "cannot be made" in seen("fail(3)", "Exception")[1]
        assert "stop" in seen("fail(4)", "Exception")[1]
        assert seen("fail(5)", "ValueError") == ["ValueError", "?", True]
        assert "no such file" in seen("fail(6)", "OSError")[1]
        name, text, _ = seen("strange()", "TypeError")
        assert name == "TypeError"
        assert "`strange()['a'][0]` is an object" in text
        assert "surrogate" in seen("no_text()", "TypeError")[1]


class NoSuchPage(LookupError):
    """One that the guest has not."""


class Unreadable(OSError, ValueError):
    """As `requests.JSONDecodeError` is: two classes of the library, and other arguments."""

    def __init__(self, *, page: int) -> None:
        super().__init__(f"page {page}")


def _raised(call: Callable[[], object]) -> Exception:
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize("style", ["thread", "coroutine"])
def test_exceptions_of_tools_are_caught_as_they_would_be_without_isolet(
    server: isolet.Server, style: str
) -> None:
    http_error = urllib.error.HTTPError("http://a.test", 404, "no page", Message(), None)
    errors: dict[Exception, list[str]] = {
        _raised(lambda: json.loads("{")): ["json.JSONDecodeError", "ValueError"],
        _raised(lambda: b"a\xff".decode()): ["UnicodeDecodeError", "ValueError"],
        _raised(lambda: "caf\xe9".encode("ascii")): ["UnicodeEncodeError", "UnicodeError"],
        _raised(lambda: "\xe9".translate({233: 2**31})): ["ValueError"],
        _raised(lambda: Path("/nonexistent/a'b").read_bytes()): ["FileNotFoundError", "OSError"],
        _raised(lambda: decimal.Decimal("x")): ["decimal.InvalidOperation", "ArithmeticError"],
        _raised(lambda: queue.Queue().get_nowait()): ["queue.Empty"],
        _raised(lambda: io.StringIO().fileno()): ["io.UnsupportedOperation", "OSError"],
        _raised(lambda: zoneinfo.ZoneInfo("no/zone")): ["zoneinfo.ZoneInfoNotFoundError"],
        configparser.NoSectionError("s"): ["configparser.NoSectionError", "configparser.Error"],
        subprocess.CalledProcessError(3, ["a"]): ["subprocess.CalledProcessError"],
        http_error: ["urllib.error.HTTPError", "urllib.error.URLError", "OSError"],
        sqlite3.IntegrityError("twice"): ["Exception"],
        UnicodeDecodeError("utf-8", b"x" * 9, 0, 2, "odd"): ["UnicodeDecodeError"],
        KeyError("k"): ["KeyError", "LookupError"],
        NoSuchPage("page 7"): ["LookupError"],
        Unreadable(page=7): ["OSError", "ValueError"],
        asyncio.TimeoutError("late"): ["TimeoutError", "asyncio.TimeoutError"],
    }
    if sys.version_info >= (3, 11):
        errors[ExceptionGroup("some", [ValueError()])] = ["ExceptionGroup", "Exception"]
    kept = list(errors)

    def fail(number: int) -> None:
        raise kept[number]

    async def fail_later(number: int) -> None:
        raise kept[number]

    code = """
import asyncio, configparser, decimal, io, json, queue, subprocess, urllib.error, zoneinfo
caught = []
for kind in kinds:
    try:
        fail(number)
    except eval(kind) as error:
        caught.append([type(error).__name__, str(error)])
caught"""
    tool = isolet.tool(fail if style == "thread" else fail_later, name="fail")
    with isolet.Sandbox(server=server, tools=[tool]).session() as session:
        for number, (error, kinds) in enumerate(errors.items()):
            name = type(error).__name__
            text = repr(error.args[0]) if type(error) is KeyError else str(error)
            caught = session.eval(code, inputs={"number": number, "kinds": kinds})
            assert caught == [[name, text]] * len(kinds)
            # And back: what the guest does not catch.
            execution = session.run("fail(number)", inputs={"number": number})
            assert execution.error is not None
            assert (execution.error.type, execution.error.message) == (name, text)
        for own in (LookupError, Exception):
            caught = session.eval(f"""
try:
    fail({kept.index(next(e for e in kept if isinstance(e, NoSuchPage)))})
except RuntimeError:
    found = "RuntimeError"
except {own.__name__} as error:
    found = type(error).__mro__[1].__name__
found""")
            assert caught == "LookupError"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there are no groups")
def test_a_group_of_exceptions_is_one_of_the_same_exceptions(server: isolet.Server) -> None:
    class Several(ExceptionGroup[Exception]):
        pass

    inner = ExceptionGroup("inner", [KeyError("k"), NoSuchPage("page 7")])
    groups = [
        ExceptionGroup("some", [ValueError("a"), inner]),
        Several("own (2 sub-exceptions)", [json.JSONDecodeError("bad", "[1", 1)]),
        ExceptionGroup("many", [ValueError(str(number)) for number in range(40)]),
    ]

    def fail(number: int) -> None:
        raise groups[number]

    code = """
import json
seen = []
try:
    fail(number)
except* LookupError as group:
    seen += [repr(one) for one in group.exceptions[0].exceptions]
except* json.JSONDecodeError as group:
    seen += [type(group).__name__, group.message, group.exceptions[0].pos]
except* ValueError as group:
    seen += [type(group).__name__, group.message, len(group.exceptions), repr(group.exceptions[0])]
seen"""
    with isolet.Sandbox(server=server, tools=[fail]).session() as session:
        found = [session.eval(code, inputs={"number": number}) for number in range(3)]
        name = "try: fail(1)\nexcept ExceptionGroup as group: name = type(group).__name__\nname"
        assert session.eval(name) == "Several"
    assert found == [
        ["KeyError('k')", "NoSuchPage('page 7')", "ExceptionGroup", "some", 1, "ValueError('a')"],
        ["ExceptionGroup", "own (2 sub-exceptions)", 1],
        ["ExceptionGroup", "many", 32, "ValueError('0')"],
    ]


def test_exceptions_of_tools_have_the_fields_that_their_text_tells(server: isolet.Server) -> None:
    errors = [
        _raised(lambda: json.loads("[1,\n 2,")),
        _raised(lambda: b"a\xff".decode()),
        FileNotFoundError(2, "No such file or directory", "x.txt"),
    ]

    def fail(number: int) -> None:
        raise errors[number]

    code = """
def failed(number):
    try:
        fail(number)
    except Exception as error:
        return error
json, text, file = map(failed, range(3))
again = type(failed(0)) is type(json)
[json.msg, json.pos, json.lineno, json.colno, text.start, text.end, text.reason, file.errno,
 file.filename, again]"""
    with sandbox(server, fail).session() as session:
        assert session.eval(code) == [
            *("Expecting value", 7, 2, 4),
            *(1, 2, "invalid start byte", 2, "x.txt", True),
        ]


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
    ids=shown,
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
    except isolet.BusyError:
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


def test_calls_are_served_that_come_together_with_output(server: isolet.Server) -> None:
    def double(n: int) -> int:
        return 2 * n

    written: list[str] = []
    code = "for n in range(100): print(n, double(n))"
    with sandbox(server, double).session() as session:
        assert session.run(code, on_stdout=written.append).ok
        assert "".join(written) == "".join(f"{n} {2 * n}\n" for n in range(100))
        items = list(session.stream(code))
    assert isinstance(items[-1], isolet.Execution)
    assert items[-1].stdout == "".join(written)
