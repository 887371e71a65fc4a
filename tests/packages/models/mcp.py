"""Calls a tool of a server in the same process."""
# With: mcp<1.10

import asyncio

from mcp.server.fastmcp import FastMCP

server = FastMCP("server")


@server.tool()
def double(n: int) -> int:
    return n * 2


answer = asyncio.run(server.call_tool("double", {"n": 4}))
assert "8" in str(answer)
