"""Asks a server of Redis on a port."""

import redis

try:
    redis.Redis(port=1).ping()
except redis.ConnectionError as error:
    raise SystemExit(str(error))
assert False
