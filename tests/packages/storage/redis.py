"""Asks a server."""

import os

import redis

server = redis.Redis.from_url(os.environ["SERVER"].replace("http", "redis"))
try:
    assert server.ping()
except redis.ConnectionError as error:
    # Without the port, which is another one in each run.
    raise OSError(str(error).rpartition("; ")[2]) from error
