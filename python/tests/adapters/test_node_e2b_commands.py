"""Commands of a sandbox by E2B's own clients for Python, on a node."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from e2b_nodes import node

pytest.importorskip("e2b_code_interpreter")

from e2b import CommandExitException, PtySize
from e2b.exceptions import NotFoundException, SandboxException
from e2b_code_interpreter import AsyncSandbox, Sandbox


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    with node(tmp_path_factory.mktemp("node"), "") as address:
        yield address


@pytest.fixture(scope="module")
def sandbox(address) -> Iterator[Sandbox]:
    with Sandbox.create() as sandbox:
        yield sandbox


def test_a_command_has_output_status_and_errors(sandbox):
    result = sandbox.commands.run("echo out; echo err >&2")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 0)
    with pytest.raises(CommandExitException) as caught:
        sandbox.commands.run("echo before; exit 3")
    assert (caught.value.exit_code, caught.value.stdout) == (3, "before\n")
    with pytest.raises(CommandExitException) as caught:
        sandbox.commands.run("git status")
    assert caught.value.exit_code == 127
    assert "git: command not found" in caught.value.stderr


def test_a_command_has_its_environment_and_directory_and_files_stay(sandbox):
    sandbox.files.write("data/names.txt", "b\na\nb\n")
    result = sandbox.commands.run("pwd; echo $WHO; sort names.txt | uniq -c > counted", cwd="data",
                                  envs={"WHO": "me"})  # fmt: skip
    assert result.stdout == "/home/user/data\nme\n"
    assert sandbox.files.read("data/counted").split() == ["1", "a", "2", "b"]
    assert sandbox.commands.run("pwd; echo $WHO").stdout == "/home/user\n\n"
    assert sandbox.run_code("import os; os.listdir('data')").text == "['names.txt', 'counted']"


def test_output_comes_while_a_command_runs(sandbox):
    pieces = []
    sandbox.commands.run("echo 1; echo 2 >&2; echo 3", on_stdout=pieces.append,
                         on_stderr=pieces.append)  # fmt: skip
    assert "".join(pieces).split() == ["1", "2", "3"]


def test_a_command_in_the_background_is_listed_and_killed(sandbox):
    started = sandbox.commands.run("echo begun; sleep 1000", background=True)
    for out, _, _ in started:
        assert out == "begun\n"
        break
    listed = sandbox.commands.list()
    assert [(each.pid, each.args[-1]) for each in listed] == [
        (started.pid, "echo begun; sleep 1000")
    ]
    assert started.kill()
    with pytest.raises(CommandExitException) as caught:
        started.wait()
    assert (caught.value.exit_code, caught.value.error) == (-1, "signal: killed")
    assert not sandbox.commands.kill(started.pid)
    assert sandbox.commands.list() == []
    with pytest.raises(NotFoundException):
        sandbox.commands.connect(started.pid)
    assert sandbox.commands.run("echo on").stdout == "on\n"


def test_a_command_reads_what_is_sent(sandbox):
    started = sandbox.commands.run("read a; echo got $a; cat", background=True, stdin=True)
    again = sandbox.commands.connect(started.pid)
    sandbox.commands.send_stdin(started.pid, "first\n")
    for out, _, _ in again:
        assert out == "got first\n"
        break
    sandbox.commands.send_stdin(started.pid, "rest\n")
    sandbox.commands.close_stdin(started.pid)
    assert started.wait().stdout == "got first\nrest\n"


def test_a_terminal_is_refused(sandbox):
    with pytest.raises(SandboxException, match="no terminals"):
        sandbox.pty.create(size=PtySize(rows=24, cols=80))


def test_the_asynchronous_client_runs_commands_beside_each_other(address):
    async def main() -> None:
        async with await AsyncSandbox.create() as sandbox:
            results = await asyncio.gather(*(sandbox.commands.run(f"echo {n}") for n in range(5)))
            assert [each.stdout for each in results] == [f"{n}\n" for n in range(5)]

    asyncio.run(main())
