"""Serves a page on a port."""

import asyncio

import uvicorn


async def app(scope, receive, send):
    pass


assert asyncio.run(uvicorn.Server(uvicorn.Config(app, port=8000)).serve()) is None
