"""Asks a model, whose answer the script has put on a server."""

import json
import os
import urllib.request

from ollama import Client

url = os.environ["SERVER"] + "/ollama"
answer = {"model": "m", "message": {"role": "assistant", "content": "4"}, "done": True}
put = urllib.request.Request(url + "/api/chat", json.dumps(answer).encode(), method="PUT")
urllib.request.urlopen(put)

answer = Client(url).chat("m", messages=[{"role": "user", "content": "2 + 2"}])
assert answer.message.content == "4"
