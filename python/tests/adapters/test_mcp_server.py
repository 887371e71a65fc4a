"""`isolet mcp` and the clients of the package `mcp`: both generations, over pipes and HTTP."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from isolet._find import find_binary

mcp = pytest.importorskip("mcp")

MODERN = hasattr(mcp, "Client")
"""Whether the package speaks the revision 2026-07-28; it then speaks the older ones, too."""

MODES = ["auto", "legacy"] if MODERN else ["legacy"]
TRANSPORTS = ["stdio", "http"] if MODERN else ["stdio"]


@contextlib.asynccontextmanager
async def connected(transport: str, mode: str) -> AsyncIterator[Any]:
    """A client with a server of its own."""
    command = find_binary()
    if not MODERN:
        from mcp.client.stdio import stdio_client

        parameters = mcp.StdioServerParameters(command=command, args=["mcp"])
        async with stdio_client(parameters) as streams, mcp.ClientSession(*streams) as session:
            await session.initialize()
            yield session
    elif transport == "stdio":
        parameters = mcp.StdioServerParameters(command=command, args=["mcp"])
        async with mcp.Client(parameters, mode=mode) as client:
            yield client
    else:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        server = await asyncio.create_subprocess_exec(
            command, "mcp", "--http", "127.0.0.1:0", stderr=asyncio.subprocess.PIPE
        )
        try:
            assert server.stderr is not None
            url = (await server.stderr.readline()).decode().split()[-1]
            token = (await server.stderr.readline()).decode().split()[-1]
            headers = {"Authorization": f"Bearer {token}"}
            async with httpx2.AsyncClient(headers=headers) as http:
                streams = streamable_http_client(url, http_client=http)
                async with mcp.Client(streams, mode=mode) as client:
                    yield client
        finally:
            server.kill()
            await server.wait()


def structured(result: Any) -> dict[str, Any]:
    """The structured content, which both generations of the package name in their own way."""
    return getattr(result, "structured_content", None) or result.structuredContent


async def use(transport: str, mode: str) -> None:
    async with connected(transport, mode) as client:
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == ["close_session", "run_python"]
        # The client compares each result with the output schema.
        first = await client.call_tool("run_python", {"code": "x = 41\nprint('hello')"})
        session = structured(first)["session"]
        assert first.content[0].text == f"hello\nsession: {session}"
        again = await client.call_tool("run_python", {"code": "x + 1", "session": session})
        assert structured(again)["value"] == 42
        statuses = {
            "1/0": "error",
            "while True: pass": "timeout",
            "import os; os._exit(1)": "error",
            "import sys; sys.exit()": "ok",
            "[print(i) for i in range(20000)]": "ok",
        }
        for code, status in statuses.items():
            result = await client.call_tool("run_python", {"code": code, "timeout": 1})
            assert structured(result)["status"] == status, code
        resources = (await client.list_resources()).resources
        assert [resource.name for resource in resources] == ["stdout", "value"]
        read = await client.read_resource(resources[0].uri)
        assert read.contents[0].text.startswith("0\n1\n2\n")
        closed = await client.call_tool("close_session", {"session": session})
        assert structured(closed) == {"closed": True}
        gone = await client.call_tool("run_python", {"code": "x", "session": session})
        assert "it was closed" in gone.content[0].text


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_client_runs_python_in_sessions(transport: str, mode: str) -> None:
    asyncio.run(asyncio.wait_for(use(transport, mode), 120))
