"""Makes requests, also several at once without blocking."""

import asyncio
import os

import httpx

server = os.environ["SERVER"]
assert httpx.get(server + "/x", params={"q": "1"}).json()["path"] == "/x?q=1"


async def several():
    async with httpx.AsyncClient() as client:
        return await asyncio.gather(*(client.get(f"{server}/{n}") for n in range(3)))


assert [answer.json()["path"] for answer in asyncio.run(several())] == ["/0", "/1", "/2"]
