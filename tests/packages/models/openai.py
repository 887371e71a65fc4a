"""Asks a model, whose answer the script has put on a server, and reads it as a class."""

import json
import os
import urllib.request

from openai import OpenAI

url = os.environ["SERVER"] + "/openai"
message = {"role": "assistant", "content": "4"}
choice = {"index": 0, "finish_reason": "stop", "message": message}
answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
put = urllib.request.Request(
    url + "/chat/completions", json.dumps(answer).encode(), method="PUT"
)
urllib.request.urlopen(put)

messages = [{"role": "user", "content": "2 + 2"}]
client = OpenAI(api_key="x", base_url=url)
answer = client.chat.completions.create(model="m", messages=messages)
assert answer.choices[0].message.content == "4"
