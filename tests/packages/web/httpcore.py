"""Makes a request from a pool of connections."""

import json
import os

import httpcore

with httpcore.ConnectionPool() as pool:
    answer = pool.request("GET", os.environ["SERVER"] + "/x")
assert answer.status == 200 and json.loads(answer.content)["path"] == "/x"
