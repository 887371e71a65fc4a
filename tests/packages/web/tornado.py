"""Fills a template, and asks a server."""

import asyncio
import os

from tornado.httpclient import AsyncHTTPClient
from tornado.template import Template

assert Template("Hi {{ name }}").generate(name="Ann") == b"Hi Ann"


async def main():
    answer = await AsyncHTTPClient().fetch(os.environ["SERVER"] + "/x")
    assert answer.code == 200


asyncio.run(main())
