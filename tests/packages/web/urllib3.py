"""Makes a request from a pool of connections."""

import os

import urllib3

answer = urllib3.PoolManager().request("POST", os.environ["SERVER"] + "/x", json={"n": 2})
assert answer.status == 200 and answer.json()["method"] == "POST"
