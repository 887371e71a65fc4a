"""Connects to a server in the same program, and sends a message back and forth."""

import asyncio

from websockets.asyncio.client import connect
from websockets.asyncio.server import serve


async def main():
    async def echo(socket):
        async for message in socket:
            await socket.send(message)

    async with serve(echo, "127.0.0.1", 8765):
        async with connect("ws://127.0.0.1:8765") as socket:
            await socket.send("hi")
            assert await socket.recv() == "hi"


asyncio.run(main())
