"""Calls a tool of a server in the same program."""

import asyncio

from fastmcp import Client, FastMCP

server = FastMCP("demo")


@server.tool
def double(number: int) -> int:
    return 2 * number


async def main():
    async with Client(server) as client:
        assert (await client.call_tool("double", {"number": 21})).data == 42


asyncio.run(main())
