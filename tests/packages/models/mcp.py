"""Calls a tool of a server in the same process."""

import asyncio

from mcp.server.mcpserver import MCPServer

server = MCPServer("server")


@server.tool()
def double(n: int) -> int:
    return n * 2


answer = asyncio.run(server.call_tool("double", {"n": 4}))
assert "8" in str(answer)
