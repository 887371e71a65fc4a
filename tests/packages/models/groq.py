"""Asks a model, whose answer the script has put on a server."""

import json
import os
import urllib.request

from groq import Groq

url = os.environ["SERVER"] + "/groq"
message = {"role": "assistant", "content": "4"}
choice = {"index": 0, "finish_reason": "stop", "message": message}
answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
path = url + "/openai/v1/chat/completions"
put = urllib.request.Request(path, json.dumps(answer).encode(), method="PUT")
urllib.request.urlopen(put)

messages = [{"role": "user", "content": "2 + 2"}]
answer = Groq(api_key="x", base_url=url).chat.completions.create(model="m", messages=messages)
assert answer.choices[0].message.content == "4"
