"""Asks a model, whose answer the script has put on a server, and reads it as a class."""

import json
import os
import urllib.request

from anthropic import Anthropic

url = os.environ["SERVER"] + "/anthropic"
answer = {"id": "1", "type": "message", "role": "assistant", "model": "m"}
answer |= {"content": [{"type": "text", "text": "4"}], "stop_reason": "end_turn"}
answer |= {"usage": {"input_tokens": 1, "output_tokens": 1}}
put = urllib.request.Request(url + "/v1/messages", json.dumps(answer).encode(), method="PUT")
urllib.request.urlopen(put)

messages = [{"role": "user", "content": "2 + 2"}]
client = Anthropic(api_key="x", base_url=url)
answer = client.messages.create(model="m", max_tokens=9, messages=messages)
assert answer.content[0].text == "4"
