"""What type checkers see of the package. Checked by pyright and mypy, never run."""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from typing_extensions import assert_type

import isolet
import isolet.node
from isolet import aio


def search(query: str, limit: int = 10) -> list[str]:
    return [query] * limit


async def ask(prompt: str) -> str:
    return prompt


@isolet.tool(timeout=3)
def decorated(x: int) -> int:
    return x


def synchronous() -> None:
    assert_type(isolet.run("1", inputs={"x": 1}, timeout=3), isolet.Execution)
    limits = isolet.Limits(memory_bytes=1)
    assert_type(isolet.run("1", tools=[search], limits=limits), isolet.Execution)
    assert_type(decorated, isolet.Tool)
    tools: dict[str, Callable[..., Any] | isolet.Tool] = {"a": search, "b": decorated}
    sandbox = isolet.Sandbox(
        tools=tools,
        submit={"answer": str},
        mounts={"/data": ".", "/out": isolet.Mount("out", mode="rw")},
        allow_net=["example.com"],
        isolation="process",
    )
    with sandbox as same, same.session() as session:
        assert_type(session, isolet.Session)
        assert_type(session.run("1").status, isolet.execution.Status)
        assert_type(session.eval("1"), Any)
        for item in session.stream("1"):
            assert_type(item, isolet.Output | isolet.Display | isolet.Execution)
        assert_type(session.files.get("a"), bytes)
        assert_type(session.variables(), list[isolet.Variable])
        assert_type(session.run("1").error, isolet.GuestException | None)
    journal = isolet.Journal("run.journal", sync=True, max_bytes=1 << 20)
    assert_type(isolet.run("1", journal=journal), isolet.Execution)
    assert_type(isolet.resume("run.journal", tools=[search], on_stdout=print), isolet.Execution)
    assert_type(isolet.replay("run.journal", until_call=3), isolet.Execution)
    with sandbox.session(journal="run.journal") as session, sandbox.resume(journal) as resumed:
        assert_type(session.run("1", journal=journal, timeout=3), isolet.Execution)
        assert_type(resumed.go_on(on_stdout=print), isolet.Execution | None)
        assert_type(sandbox.replay("run.journal").bind_locals(), isolet.StoppedAt | None)
    assert_type(isolet.tool(search, idempotent=True), isolet.Tool)
    for execution in sandbox.map(["1"], concurrency=2):
        assert_type(execution, isolet.Execution)


async def asynchronous() -> None:
    assert_type(await aio.run("1", tools=[search, ask]), isolet.Execution)
    async with aio.Sandbox(tools=[ask]) as sandbox, sandbox.session() as session:
        assert_type(await session.run("1"), isolet.Execution)
        assert_type(await session["x"], Any)
        async for item in session.stream("1"):
            assert_type(item, isolet.Output | isolet.Display | isolet.Execution)
        assert_type(await sandbox.session(), aio.Session)
    async with sandbox.session(journal="run.journal") as session:
        assert_type(await session.go_on(), isolet.Execution | None)
    assert_type(await aio.resume("run.journal", tools=[search, ask]), isolet.Execution)
    assert_type(await aio.replay("run.journal", until_time=2.5), isolet.Execution)
    async for execution in sandbox.map(["1"]):
        assert_type(execution, isolet.Execution)
    assert_type(await isolet.aio.run("1"), isolet.Execution)


def refused(session: isolet.Session, remote: isolet.node.Session) -> None:
    """Has only mistakes: a checker that does not see one complains of its comment."""
    session.run("1", timeut=1)  # type: ignore[call-arg]
    session.run("1", timeout="1")  # type: ignore[arg-type]
    session.run("1", syntax="java")  # type: ignore[arg-type]
    session.run("1", on_stdout=lambda: None)  # type: ignore[arg-type, misc]
    session.eval("1", timeut=1)  # type: ignore[call-arg]
    session.stream("1", on_stdout=print)  # type: ignore[call-arg]
    session.go_on(timeout=1)  # type: ignore[call-arg]
    remote.run("1", timeut=1)  # type: ignore[call-arg]
    remote.run("1", journal="run.journal")  # type: ignore[call-arg]
    remote.stream("1", on_stdout=print)  # type: ignore[call-arg]
    isolet.run("1", allow_nett=["example.com"])  # type: ignore[call-arg]


async def refused_by_asyncio(session: aio.Session) -> None:
    await session.run("1", timeut=1)  # type: ignore[call-arg]
    await session.eval("1", timeut=1)  # type: ignore[call-arg]
    session.stream("1", on_stdout=print)  # type: ignore[call-arg]
