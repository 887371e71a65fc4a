"""What happens past a limit, as the docstring of each field of `Limits` says."""

from __future__ import annotations

import pytest

import isolet


def limited(server: isolet.Server, limits: isolet.Limits, **policy) -> isolet.Session:
    return isolet.Sandbox(server=server, limits=limits, **policy).session()


def answer() -> int:
    return 42


def measure(text: str) -> int:
    return len(text)


def test_of_long_output_the_start_and_the_end_are_kept(server: isolet.Server):
    with limited(server, isolet.Limits(stdout_bytes=100, stderr_bytes=100)) as session:
        code = "import sys\nfor to in sys.stdout, sys.stderr: print('a' + 'x' * 998 + 'b', file=to)"
        pieces: list[str] = []
        execution = session.run(code, on_stdout=pieces.append)
        assert execution.ok
        for kept in (execution.stdout, execution.stderr):
            assert kept.startswith("ax")
            assert kept.endswith("xb\n")
            assert len(kept) < 200
        assert execution.truncated.stdout_bytes == execution.truncated.stderr_bytes == 901
        assert "".join(pieces) == "a" + "x" * 998 + "b\n"


def test_lines_are_counted_too(server: isolet.Server):
    with limited(server, isolet.Limits(output_lines=10)) as session:
        execution = session.run("for line in range(100): print(line)")
        assert execution.ok
        assert execution.stdout.splitlines()[0] == "0"
        assert execution.stdout.splitlines()[-1] == "99"
        assert execution.truncated.stdout_bytes > 0


def test_further_displays_and_files_are_counted(server: isolet.Server):
    with limited(server, isolet.Limits(displays=2, files=3)) as session:
        execution = session.run(
            "for at in range(5):\n"
            "    display({'text/plain': str(at)}, raw=True)\n"
            "    open(f'{at}.txt', 'w').close()"
        )
        assert execution.ok
        assert [shown.data["text/plain"] for shown in execution.displays] == ["0", "1"]
        assert len(execution.files) == 3
        assert (execution.truncated.displays, execution.truncated.files) == (3, 2)
        assert [entry.name for entry in session.files.list()] == [f"{at}.txt" for at in range(5)]
    with limited(server, isolet.Limits(display_bytes=1000)) as session:
        code = "for _ in range(3): display({'text/plain': 'x' * 400}, raw=True)"
        assert session.run(code).truncated.displays == 1


def test_a_value_that_is_too_large_does_not_cross(server: isolet.Server):
    limits = isolet.Limits(value_bytes=1 << 16)
    with limited(server, limits, tools=[isolet.tool(lambda x: x * 2, name="twice")]) as session:
        execution = session.run("'x' * 100_000")
        assert execution.ok
        assert execution.value is None
        assert "65536 bytes" in (execution.value_error or "")
        for code in ("twice('x' * 100_000)", "twice('x' * 40_000)"):
            error = session.run(code).error
            assert error is not None
            assert error.type == "ValueError"
        with pytest.raises(isolet.TransferError, match="65536"):
            session.set({"x": "x" * 100_000})
        with pytest.raises(isolet.TransferError, match="65536"):
            session.files.put("x", b"x" * 100_000)
        session.run("open('y', 'w').write('x' * 100_000)").raise_for_error()
        with pytest.raises(isolet.TransferError, match="65536"):
            session.files.get("y")


def test_arguments_of_calls_have_a_limit_together(server: isolet.Server):
    with limited(server, isolet.Limits(call_bytes=1000), tools=[measure]) as session:
        error = session.run("measure('x' * 2000)").error
        assert error is not None
        assert error.type == "RuntimeError"


def test_too_many_calls_stop_the_run(server: isolet.Server):
    with limited(server, isolet.Limits(tool_calls=3), tools=[answer]) as session:
        execution = session.run("while True: answer()")
        assert execution.status == "limit"
        assert "the limit is 3" in (execution.reason or "")
        assert execution.session_alive
        assert session.eval("answer()") == 42


def test_too_many_refusals_stop_the_run(server: isolet.Server):
    with limited(server, isolet.Limits(refusals=3)) as session:
        execution = session.run(
            "import urllib.request\n"
            "while True:\n"
            "    try: urllib.request.urlopen('http://example.com')\n"
            "    except OSError: pass"
        )
        assert execution.status == "limit"
        assert execution.session_alive


def test_the_time_of_tools_has_a_limit_of_its_own(server: isolet.Server):
    async def never() -> None:
        import asyncio

        await asyncio.Event().wait()

    with limited(server, isolet.Limits(host_time=0.2), tools=[never]) as session:
        execution = session.run("never()")
        assert execution.status == "timeout"
        assert session.eval("40 + 2") == 42


def test_calls_beyond_those_at_once_wait(server: isolet.Server):
    most = now = 0

    async def busy() -> None:
        nonlocal most, now
        import asyncio

        now += 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        now -= 1

    limits = isolet.Limits(concurrent_tools=2)
    with limited(server, limits, tools=[busy]) as session:
        code = "import asyncio\nawait asyncio.gather(*(busy.aio() for _ in range(10)))"
        assert session.run(code).ok
        assert most == 2


def test_a_tool_has_limits_of_its_own(server: isolet.Server):
    async def never() -> None:
        import asyncio

        await asyncio.Event().wait()

    tools = [isolet.tool(answer, max_calls=1), isolet.tool(never, timeout=0.1)]
    with limited(server, isolet.Limits(), tools=tools) as session:
        assert session.eval("answer()") == 42
        for code, kind in (("answer()", "RuntimeError"), ("never()", "TimeoutError")):
            error = session.run(code).error
            assert error is not None
            assert error.type == kind


def test_a_mount_has_quotas(server: isolet.Server, tmp_path):
    mount = isolet.Mount(tmp_path, mode="rw", quota_bytes=1000, quota_files=2)
    with limited(server, isolet.Limits(), mounts={"/out": mount}) as session:
        session.run("from pathlib import Path").raise_for_error()
        for code in (
            "Path('/out/a').write_bytes(bytes(2000))",
            "for name in 'bcd': Path('/out', name).touch()",
        ):
            error = session.run(code).error
            assert error is not None
            assert error.type == "OSError"
            assert "quota" in error.message.lower()


def test_more_sessions_than_a_server_may_have_are_refused():
    with isolet.Server(max_sessions=1) as server:
        sandbox = isolet.Sandbox(server=server)
        with sandbox.session() as first:
            assert first.eval("1") == 1
            with pytest.raises(isolet.LimitError), sandbox.session() as second:
                second.run("1")


def test_limits_that_make_no_sense_are_refused(server: isolet.Server):
    for limits in (isolet.Limits(memory_bytes=1), isolet.Limits(run_time=1e12)):
        with pytest.raises(isolet.ConfigError):
            isolet.Sandbox(server=server, limits=limits).run("1")
