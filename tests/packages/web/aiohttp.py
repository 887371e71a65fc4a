"""Makes a request."""

import asyncio
import os

import aiohttp


async def get():
    async with aiohttp.ClientSession() as session:
        async with session.get(os.environ["SERVER"] + "/x") as answer:
            return await answer.json()


assert asyncio.run(get())["path"] == "/x"
