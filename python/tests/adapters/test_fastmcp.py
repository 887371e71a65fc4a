"""`isolet.fastmcp.SandboxProvider` runs the code of FastMCP's `CodeMode`."""

from __future__ import annotations

import asyncio
import json

import failing
import pytest

fastmcp = pytest.importorskip("fastmcp", reason="FastMCP is not installed")

from fastmcp import Client, Context, FastMCP  # noqa: E402
from fastmcp.exceptions import ToolError  # noqa: E402
from fastmcp.experimental.transforms.code_mode import CodeMode  # noqa: E402

from isolet.fastmcp import SandboxProvider  # noqa: E402


def run(code, **options):
    return asyncio.run(SandboxProvider(timeout=5).run(code, **options))


def test_return_ends_the_code_with_its_value():
    assert run("if x:\n    return {'a': [x]}\nreturn 0", inputs={"x": 1}) == {"a": [1]}


def test_without_return_it_is_the_last_value_or_what_was_printed():
    assert run("1 + 1") == 2
    assert run("print('a')") == "a\n"
    assert run("x = 1") is None


def test_functions_are_awaited_also_several_at_once():
    both = []

    async def slow(name: str) -> str:
        both.append(asyncio.get_running_loop().create_future())
        if len(both) == 2:
            for each in both:
                each.set_result(None)
        await asyncio.wait_for(asyncio.shield(both[name == "b"]), 60)
        return name.upper()

    def plain(x):
        return x + 1

    code = (
        "import asyncio\n"
        "found = await asyncio.gather(slow('a'), slow('b'))\n"
        "return [*found, await plain(1)]"
    )
    assert run(code, external_functions={"slow": slow, "plain": plain}) == ["A", "B", 2]


def test_code_catches_what_a_function_raises_by_its_class():
    async def read():
        json.loads("[1,")

    code = "import json\ntry: await read()\nexcept json.JSONDecodeError as e: return e.pos"
    assert run(code, external_functions={"read": read}) == 3


def test_exceptions_of_functions_keep_what_they_are():
    code = failing.CODE.replace("try: fail(", "try: await fail(") + "return seen"
    for function in (failing.fail, failing.fail_later):
        assert run(code, external_functions={"fail": function}) == failing.SEEN


def test_an_exception_is_a_tool_error_with_the_traceback():
    with pytest.raises(ToolError, match=r"(?s)1 / x.*ZeroDivisionError: division by zero"):
        run("x = 0\n1 / x")
    with pytest.raises(ToolError, match="cannot cross"):
        run("return object()")
    with pytest.raises(ToolError, match="the limit is"):
        asyncio.run(SandboxProvider(timeout=0.2).run("while True: pass"))


def test_runs_share_nothing():
    async def main():
        provider = SandboxProvider()
        await provider.run("x = 1")
        return await provider.run("return 'x' in globals()")

    assert asyncio.run(main()) is False


def test_cancellation_stops_the_code():
    async def main():
        started = asyncio.Event()

        async def begin():
            started.set()

        task = asyncio.ensure_future(
            SandboxProvider().run(
                "await begin()\nwhile True: pass", external_functions={"begin": begin}
            )
        )
        await asyncio.wait_for(started.wait(), 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 60)

    asyncio.run(main())


def test_code_mode_chains_tools_of_the_server():
    server = FastMCP("test", transforms=[CodeMode(sandbox_provider=SandboxProvider())])

    @server.tool
    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    @server.tool
    async def whoami(ctx: Context) -> str:
        """Names the server."""
        return ctx.fastmcp.name

    async def main():
        async with Client(server) as client:
            code = (
                "r = await call_tool('add', {'a': 1, 'b': 2})\n"
                "s = await call_tool('add', {'a': r['result'], 'b': 4})\n"
                "return [s['result'], (await call_tool('whoami', {}))['result']]"
            )
            good = await client.call_tool("execute", {"code": code})
            code = "await call_tool('add', {'a': 'x'})"
            bad = await client.call_tool("execute", {"code": code}, raise_on_error=False)
            return good, bad

    good, bad = asyncio.run(main())
    assert good.content[0].text.replace(" ", "").replace("\n", "") == '[7,"test"]'
    assert bad.is_error
    assert "call_tool('add') failed" in bad.content[0].text
    assert "Valid parameters for add" in bad.content[0].text
