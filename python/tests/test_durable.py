"""Recorded sessions of the client: one goes on after its process was killed, and can be looked at.

What is killed is a program of its own, with its server: `durable_child.py`.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import SECONDS

import isolet
from isolet import aio

CHILD = Path(__file__).parent / "durable_child.py"


def start(*arguments: str) -> subprocess.Popen[str]:
    """Starts the program in a group of its own, with the Python and the package of this one."""
    return subprocess.Popen(
        [sys.executable, str(CHILD), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        process_group=0,
    )


def kill_in_call(api: str, step: str, directory: Path, call: str) -> None:
    """Runs a step until its tool is in that call, and kills the program and its server there."""
    with start(api, step, str(directory), call) as child:
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == "stopped\n"
        finally:
            os.killpg(child.pid, signal.SIGKILL)
    # The server has it as long as it lives.
    with (directory / "run.journal").open() as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)


def ended(api: str, step: str, directory: Path) -> dict[str, Any]:
    """Runs a step to its end. Returns what it says."""
    with start(api, step, str(directory), "") as child:
        said, _ = child.communicate(timeout=SECONDS)
    assert child.returncode == 0
    return json.loads(said)


def calls(directory: Path) -> list[list[str]]:
    return [line.split() for line in (directory / "calls").read_text().splitlines()]


@pytest.mark.parametrize("api", ["session", "aio", "run"])
def test_a_killed_run_goes_on_in_another_process_and_calls_nothing_twice(
    api: str, tmp_path: Path
) -> None:
    kill_in_call(api, "record", tmp_path, "act 1")
    went_on = ended(api, "resume", tmp_path)
    assert went_on["failure"] is None
    lines = went_on["stdout"].splitlines()
    assert lines[0].startswith("hello 0.")
    said = ["look 0", "act 0", "look 10", "CallInterrupted", "look 20", "act 20"]
    assert lines[1:-1] == said
    before = tmp_path / "record.out"
    assert went_on["stdout"].startswith(before.read_text() if before.exists() else "hello")
    assert went_on["stdout"] == (tmp_path / "resume.out").read_text()
    made = calls(tmp_path)
    assert [each[:2] for each in made] == [[name, f"{n}"] for n in range(3) for name in TOOLS]
    assert len({number for _, _, number in made}) == len(made)


TOOLS = ("look", "act")


@pytest.mark.parametrize("api", ["session", "aio"])
def test_an_idempotent_call_is_made_again_with_its_number(api: str, tmp_path: Path) -> None:
    kill_in_call(api, "record", tmp_path, "look 1")
    # Killed in the same call once more.
    kill_in_call(api, "resume", tmp_path, "look 1")
    went_on = ended(api, "resume", tmp_path)
    assert "CallInterrupted" not in went_on["stdout"]
    assert went_on["stdout"].splitlines()[1:3] == ["look 0", "act 0"]
    made = calls(tmp_path)
    again = [number for name, n, number in made if (name, n) == ("look", "1")]
    assert len(again) == 3
    assert len(set(again)) == 1
    assert len(made) == 6 + 2


def test_a_run_that_has_ended_gives_its_result_once_more(tmp_path: Path) -> None:
    journal, called = tmp_path / "journal", []

    def add(n: int) -> int:
        called.append(n)
        return n + 1

    done = isolet.run("print('one'); add(1)", tools=[add], journal=journal)
    again = isolet.resume(journal, tools=[add])
    assert (again.value, again.stdout) == (done.value, done.stdout) == (2, "one\n")
    assert called == [1]


def test_a_session_is_recorded_from_a_run_on_and_goes_on_with_its_variables(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with isolet.Sandbox().session() as session:
        session.run("x = 1")
        session.run("x += 1", journal=journal)
        assert session.run("x += 1; print(x)", journal=str(journal)).ok
        with pytest.raises(isolet.ConfigError, match=r"recorded to .* already"):
            session.run("x = 'never'", journal=tmp_path / "other")
        with pytest.raises(isolet.ConfigError, match="no checkpoint is made"):
            session.checkpoint()
        session.end_recording()
        session.run("x = 'not recorded'")
    with isolet.Sandbox().resume(journal) as session:
        with pytest.raises(isolet.BusyError, match="`go_on`"):
            session.run("1")
        seen: list[str] = []
        execution = session.go_on(on_stdout=seen.append)
        assert execution is not None
        assert execution.stdout == "".join(seen) == "3\n"
        assert session.go_on() is None
        assert session.run("x += 1; x", journal=journal).value == 4
        with pytest.raises(TypeError, match="`go_on` has no option 'timeout'"):
            session.go_on(timeout=1)  # type: ignore[call-arg]
    assert isolet.resume(journal).value == 4


def test_a_run_that_goes_on_can_be_interrupted(tmp_path: Path) -> None:
    code, journal = "print('begins')\nwhile True: stop()", tmp_path / "journal"
    with isolet.Server() as server:

        def die():
            assert server.pid is not None
            os.kill(server.pid, signal.SIGKILL)

        tools = {"stop": isolet.tool(die, idempotent=True)}
        with pytest.raises(isolet.ServerDiedError):
            isolet.run(code, tools=tools, journal=journal, server=server)
    called = []

    def interrupt():
        called.append(isolet.call_id())
        session.interrupt()

    tools = {"stop": isolet.tool(interrupt, idempotent=True)}
    with isolet.Sandbox(tools=tools).resume(journal) as session:
        interrupted = session.go_on()
        assert interrupted is not None
        assert (interrupted.status, interrupted.stdout) == ("interrupted", "begins\n")
        made = len(called)
        assert session.eval("1 + 1", journal=journal) == 2
    # The call in which the server was killed, and none of it again.
    assert called[0] == 1
    assert isolet.resume(journal, tools=tools).value == 2
    assert len(called) == made


def test_a_stream_and_a_script_are_recorded_too(tmp_path: Path) -> None:
    with isolet.Sandbox().session() as session:
        last = list(session.stream("print('streamed'); 5", journal=tmp_path / "journal"))[-1]
        assert isinstance(last, isolet.Execution)
        assert last.value == 5
        assert session.sh("echo $((6 + 1))", journal=tmp_path / "journal").stdout == "7\n"
    assert isolet.resume(tmp_path / "journal").stdout == "7\n"


def test_a_resumed_session_has_the_files_of_its_mounts_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    mounts = {"/work": isolet.Mount(tmp_path / "work", mode="rw")}
    code = "open('/work/log', 'a').write('once\\n'); len(open('/work/log').readlines())"
    with isolet.Sandbox(mounts=mounts).session(journal=tmp_path / "journal") as session:
        assert session.run(code).value == 1
    assert isolet.resume(tmp_path / "journal", mounts=mounts).value == 1
    assert (tmp_path / "work/log").read_text() == "once\n"


def refused(path: Path) -> dict[str, tuple[Path, isolet.Policy, str]]:
    """Returns journals that are refused, with a policy and the reason."""
    isolet.run("1", env={"A": "1"}, journal=path / "good")
    isolet.Sandbox().session(journal=path / "without").close()
    (path / "text").write_text("something else\n")
    (path / "next").write_text("isolet journal 9\n")
    (path / "cut").write_bytes((path / "good").read_bytes()[:20])
    tools: isolet.Policy = {
        "env": {"A": "1"},
        "tools": [test_a_stream_and_a_script_are_recorded_too],
    }
    return {
        "no journal": (path / "text", {}, "it is no journal"),
        "another format": (path / "next", {}, "its format is 9, and this isolet reads 1"),
        "nothing": (path / "nosuch", {}, "No such file"),
        "a directory": (path, {}, "directory"),
        "cut": (path / "cut", {}, "it does not say how the session began"),
        "no variable": (path / "good", {}, "other environment variables"),
        "a tool more": (path / "good", tools, "with other "),
    }


def test_a_journal_that_cannot_be_resumed_is_refused_in_one_sentence(tmp_path: Path) -> None:
    for name, (path, policy, reason) in refused(tmp_path).items():
        with pytest.raises(isolet.JournalError) as caught:
            isolet.resume(path, **policy)
        message = str(caught.value)
        assert reason in message, (name, message)
        assert len(message.splitlines()) == 1, message
        assert "::" not in message, message


def test_a_journal_without_a_run_has_none_to_go_on_with(tmp_path: Path) -> None:
    with isolet.Sandbox().session(journal=tmp_path / "journal") as session:
        session["x"] = 5
    for look in (isolet.resume, isolet.replay):
        with pytest.raises(isolet.JournalError, match="has no run"):
            look(tmp_path / "journal")
    with isolet.Sandbox().resume(tmp_path / "journal") as session:
        assert session.go_on() is None
        assert session.eval("x") == 5


def test_a_journal_is_neither_overwritten_nor_longer_than_it_may_be(tmp_path: Path) -> None:
    isolet.run("1", journal=tmp_path / "journal")
    before = (tmp_path / "journal").read_bytes()
    with pytest.raises(isolet.JournalError, match="File exists"):
        isolet.run("1", journal=tmp_path / "journal")
    with isolet.Sandbox().session() as session:
        with pytest.raises(isolet.JournalError, match="File exists"):
            session.run("1", journal=tmp_path / "journal")
        assert session.run("2").value == 2
    assert (tmp_path / "journal").read_bytes() == before

    def answer() -> bytes:
        return os.urandom(1 << 16)

    small = isolet.Journal(tmp_path / "small", max_bytes=100_000)
    code = "for _ in range(3): answer()\n'end'"
    with pytest.raises(isolet.JournalError, match=r"the limit is 100000 bytes \(`max_bytes`\)"):
        isolet.run(code, tools=[answer], journal=small)
    larger = isolet.Journal(tmp_path / "small", sync=True, max_bytes=1 << 20)
    assert isolet.resume(larger, tools=[isolet.tool(answer, idempotent=True)]).value == "end"

    ending = isolet.Journal(tmp_path / "ending", max_bytes=100_000, when_full="end_recording")
    assert isolet.run(code, tools=[answer], journal=ending).value == "end"
    with pytest.raises(isolet.JournalError, match="is empty"):
        isolet.resume(ending, tools=[answer])


AGENT = """
def plan(goal):
    tried = []
    for step in range(4):
        tried.append(search(f"{goal} {step}"))
    return tried
print("plans")
plan("tea")
"""


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """The journal of an agent that has made four calls."""

    def search(query: str) -> str:
        return f"found {query}"

    execution = isolet.run(AGENT, tools=[search], journal=tmp_path / "agent")
    assert execution.value == [f"found tea {n}" for n in range(4)]
    return tmp_path / "agent"


def test_a_journal_is_looked_back_at_without_what_it_needed(journal: Path) -> None:
    before = journal.read_bytes()
    whole = isolet.replay(journal)
    assert (whole.stdout, whole.value) == ("plans\n", [f"found tea {n}" for n in range(4)])
    stopped = isolet.replay(journal, until_call=3)
    assert (stopped.stdout, stopped.status) == ("plans\n", "interrupted")
    with pytest.raises(isolet.JournalError, match="has no run before 0"):
        isolet.replay(journal, until_time=0)
    assert journal.read_bytes() == before
    for until in ({"until_call": 0}, {"until_time": -1}, {"until_call": 1, "until_time": 1}):
        with pytest.raises(isolet.ConfigError, match="until_"):
            isolet.replay(journal, **until)  # type: ignore[arg-type]


def test_a_replay_has_the_variables_of_the_function_in_which_it_stops(journal: Path) -> None:
    with isolet.Sandbox().replay(journal, until_call=3) as session:
        session.go_on()
        assert session.bind_locals() == isolet.StoppedAt("plan", 5, ["goal", "step", "tried"])
        assert session.eval("tried") == ["found tea 0", "found tea 1"]
        assert session.go_on() is None
    lines: list[tuple[int | tuple[str, int], list[str]]]
    lines = [(5, []), (("<cell>", 6), [f"found tea {n}" for n in range(4)])]
    for line, tried in lines:
        with isolet.Sandbox().replay(journal, until_line=line) as session:
            assert session.go_on().status == "interrupted"
            assert session.bind_locals().line == (line if isinstance(line, int) else line[1])
            assert session.eval("tried") == tried
    with pytest.raises(isolet.ConfigError, match="lines are counted from 1"):
        isolet.replay(journal, until_line=0)
    with isolet.Sandbox().session() as session:
        assert session.bind_locals() is None


def test_sessions_are_recorded_resumed_and_replayed_with_asyncio(tmp_path: Path) -> None:
    async def answer() -> int:
        return isolet.call_id()

    async def main() -> None:
        path = tmp_path / "journal"
        async with aio.Sandbox(tools=[answer]).session() as session:
            await session.run("x = 1")
            first = await session.run("x += 1; print(answer())", journal=path)
            async for item in session.stream("print(x, answer())", journal=path):
                last = item
            with pytest.raises(isolet.ConfigError, match="already"):
                await session.record(tmp_path / "other")
            await session.end_recording()
        async with aio.Sandbox(tools=[answer]).resume(path) as session:
            assert (await session.go_on()).stdout == last.stdout
            assert await session.go_on() is None
        assert (await aio.resume(path, tools=[answer])).stdout == last.stdout
        assert (await aio.replay(path)).stdout == last.stdout
        async with aio.Sandbox().replay(path, until_time=1000) as session:
            assert (await session.go_on()).stdout == first.stdout
            assert (await session.go_on()).stdout == last.stdout
            assert await session.go_on() is None
            assert await session.bind_locals() is None
        with pytest.raises(isolet.JournalError, match="No such file"):
            await aio.resume(tmp_path / "nosuch")
        with pytest.raises(isolet.JournalError, match="File exists"):
            await aio.run("1", journal=path)

    asyncio.run(main())


def test_the_number_of_a_call_is_known_only_to_its_tool() -> None:
    seen: list[int] = []

    def inner() -> None:
        seen.append(isolet.call_id())

    def outer() -> None:
        seen.append(isolet.call_id())
        isolet.run("inner()", tools=[inner])
        seen.append(isolet.call_id())

    with isolet.Sandbox(tools=[outer]).session() as session:
        session.run("outer(); outer()").raise_for_error()
    assert len(seen) == 6
    assert seen[0] == seen[2] != seen[3] == seen[5]
    with pytest.raises(LookupError):
        isolet.call_id()


def test_a_journal_is_a_value() -> None:
    assert isolet.Journal("a", sync=True) == isolet.Journal("a", sync=True)
    assert repr(isolet.Journal("a")) == (
        "Journal(path='a', sync=False, max_bytes=None, when_full='end_session')"
    )
    with pytest.raises(AttributeError):
        isolet.Journal("a").path = "b"  # type: ignore[misc]
