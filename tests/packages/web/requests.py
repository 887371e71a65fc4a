"""Makes requests and reads JSON, by a session with a cookie."""

import os

import requests

session = requests.Session()
session.cookies.set("a", "b")
answer = session.post(os.environ["SERVER"] + "/x", params={"q": "1"}, json={"n": 2})
assert answer.status_code == 200
assert answer.json() == {"method": "POST", "path": "/x?q=1", "body": '{"n": 2}'}
