"""`isolet.compat.e2b.AsyncSandbox` keeps what programs expect of E2B's code interpreter."""

from __future__ import annotations

import asyncio
import base64
import inspect
import io
import os

import pytest

from isolet.compat.e2b import (
    AsyncSandbox,
    CommandExitException,
    FileNotFoundException,
    InvalidArgumentException,
    NotFoundException,
    Sandbox,
    SandboxException,
    TimeoutException,
)


def with_sandbox(work, **options):
    """Runs a coroutine function with a sandbox."""

    async def main():
        async with await AsyncSandbox.create(**options) as sandbox:
            return await work(sandbox)

    return asyncio.run(asyncio.wait_for(main(), 50))


def test_state_text_logs_errors_and_count():
    async def work(sandbox):
        await sandbox.run_code("x = 1")
        execution = await sandbox.run_code(
            "import sys\nprint('a')\nprint('b', file=sys.stderr)\nx + 1"
        )
        assert execution.text == "2"
        assert "".join(execution.logs.stdout) == "a\n"
        assert "".join(execution.logs.stderr) == "b\n"
        assert execution.error is None
        assert execution.execution_count == 2
        execution = await sandbox.run_code("1 / 0")
        assert execution.error.name == "ZeroDivisionError"
        assert execution.results == []
        with pytest.raises(TimeoutException):
            await sandbox.run_code("while True: pass", timeout=0.2)
        assert (await sandbox.run_code("x")).text == "1"

    with_sandbox(work)


def test_callbacks_may_be_coroutine_functions():
    async def work(sandbox):
        seen = []

        async def later(what):
            await asyncio.sleep(0)
            seen.append(what)

        execution = await sandbox.run_code(
            "from IPython.display import HTML, display\n"
            "class P:\n  def _repr_png_(self): return b'png'\n  def __repr__(self): return 'P'\n"
            "print('a')\ndisplay(HTML('<b>'))\nP()",
            on_stdout=later,
            on_result=later,
        )
        first, main = execution.results
        assert seen[-2:] == [first, main]
        assert "".join(map(str, seen[:-2])) == "a\n"
        assert (first.html, first.is_main_result) == ("<b>", False)
        assert base64.b64decode(main.png) == b"png"
        assert execution.text == "P"
        errors = []
        execution = await sandbox.run_code("raise ValueError(1)", on_error=errors.append)
        assert errors == [execution.error]

    with_sandbox(work)


def test_a_callback_that_raises_ends_the_run():
    async def work(sandbox):
        def fail(_):
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            await sandbox.run_code("print(1)\nwhile True: pass", on_stdout=fail)
        assert (await sandbox.run_code("40 + 2")).text == "42"

    with_sandbox(work)


def test_runs_in_one_context_wait_for_each_other_and_those_in_others_do_not():
    async def work(sandbox):
        codes = [f"xs = globals().get('xs', []) + [{at}]; len(xs)" for at in range(5)]
        found = await asyncio.gather(*map(sandbox.run_code, codes))
        assert [each.text for each in found] == ["1", "2", "3", "4", "5"]
        assert [each.execution_count for each in found] == [1, 2, 3, 4, 5]
        going = asyncio.Event()
        endless = asyncio.create_task(
            sandbox.run_code("print(1)\nwhile True: pass", on_stdout=lambda _: going.set())
        )
        await going.wait()
        context = await sandbox.create_code_context(cwd="/tmp")
        assert (await sandbox.run_code("import os; os.getcwd()", context=context)).text == "/tmp"
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless
        assert (await sandbox.run_code("len(xs)")).text == "5"
        await sandbox.restart_code_context(context)
        assert context in await sandbox.list_code_contexts()
        await sandbox.remove_code_context(context)
        with pytest.raises(NotFoundException):
            await sandbox.run_code("1", context=context)

    with_sandbox(work)


def test_files_are_written_read_listed_and_removed():
    async def work(sandbox):
        files = sandbox.files
        assert (await files.write("data/a.txt", "ä")).path == "/home/user/data/a.txt"
        await files.write_files([{"path": "/home/user/b", "data": io.BytesIO(b"\xff")}])
        code = "open('data/a.txt', encoding='utf-8').read()"
        assert (await sandbox.run_code(code)).text == "ä"
        assert await files.read("data/a.txt") == "ä"
        assert await files.read("b", format="bytes") == bytearray(b"\xff")
        assert [piece async for piece in await files.read("b", format="stream")] == [b"\xff"]
        found = {entry.path: entry.type for entry in await files.list("/home/user", depth=2)}
        assert found == {
            "/home/user/b": "file",
            "/home/user/data": "dir",
            "/home/user/data/a.txt": "file",
        }
        assert (await files.get_info("b")).size == 1
        assert (await files.rename("b", "c/d")).name == "d"
        assert await files.make_dir("e")
        assert not await files.make_dir("e")
        await files.remove("data")
        assert not await files.exists("data/a.txt")
        for use in (files.read, files.list, files.remove, files.get_info):
            with pytest.raises(FileNotFoundException):
                await use("none")

    with_sandbox(work)


def test_environment_variables_are_those_of_the_sandbox_and_of_a_run():
    async def work(sandbox):
        code = "import os; os.environ.get('A'), os.environ.get('B')"
        assert (await sandbox.run_code(code, envs={"B": "2"})).text == "('1', '2')"
        assert (await sandbox.run_code(code)).text == "('1', None)"

    with_sandbox(work, envs={"A": "1"})


def test_what_there_is_not_is_told():
    async def work(sandbox):
        with pytest.raises(InvalidArgumentException, match="'r'"):
            await sandbox.run_code("1", language="r")
        with pytest.raises(InvalidArgumentException, match="cwd"):
            await sandbox.create_code_context(cwd="/none")
        with pytest.raises(SandboxException, match="pty"):
            await sandbox.pty.create()

    with_sandbox(work)


def test_commands_wait_for_code_and_tell_their_status():
    async def work(sandbox):
        code = "import asyncio; await asyncio.sleep(0.1); open('a', 'w').write('1')"
        heard = []
        _, done = await asyncio.gather(
            sandbox.run_code(code), sandbox.commands.run("cat a", on_stdout=heard.append)
        )
        assert (done.stdout, heard) == ("1", ["1"])
        with pytest.raises(CommandExitException) as caught:
            await sandbox.commands.run("exit 3")
        assert caught.value.exit_code == 3

    with_sandbox(work)


def test_kill_ends_it_and_removes_its_files():
    homes = []

    async def work(sandbox):
        await sandbox.files.write("a", "b")
        home = sandbox._home.name
        assert await sandbox.is_running()
        assert await sandbox.kill()
        assert not await sandbox.kill()
        assert not await sandbox.is_running()
        homes.append(home)
        with pytest.raises(NotFoundException):
            await sandbox.run_code("1")
        with pytest.raises(NotFoundException):
            await sandbox.files.read("a")

    with_sandbox(work)
    assert not os.path.exists(homes[0])


@pytest.mark.parametrize(
    "name",
    [
        "run_code",
        "create_code_context",
        "remove_code_context",
        "list_code_contexts",
        "restart_code_context",
    ],
)
def test_methods_have_the_parameters_of_e2b(name):
    e2b = pytest.importorskip("e2b_code_interpreter", reason="E2B's package is not installed")
    theirs = inspect.signature(getattr(e2b.AsyncSandbox, name)).parameters
    ours = inspect.signature(getattr(AsyncSandbox, name)).parameters
    assert list(ours) == list(theirs)
    assert list(inspect.signature(getattr(Sandbox, name)).parameters) == list(ours)


def test_code_is_read_as_a_cell_of_ipython():
    async def work(sandbox):
        assert (await sandbox.run_code("    x = %pwd\n    x")).text == "/home/user"

    with_sandbox(work)
