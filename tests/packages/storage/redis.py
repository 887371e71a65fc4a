"""Asks a server."""

import os

import redis

server = redis.Redis.from_url(os.environ["SERVER"].replace("http", "redis"))
assert server.ping()
