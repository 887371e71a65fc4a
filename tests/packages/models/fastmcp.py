"""Calls a tool of a server in the same program."""
# With: fastmcp<2.6, mcp<1.10

import asyncio

from fastmcp import Client, FastMCP

server = FastMCP("demo")


@server.tool()
def double(number: int) -> int:
    return 2 * number


async def main():
    async with Client(server) as client:
        assert "42" in str(await client.call_tool("double", {"number": 21}))


asyncio.run(main())
