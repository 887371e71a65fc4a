"""Asks a model, whose answer the script has put on a server."""

import json
import os
import urllib.request

from mistralai.client import Mistral

url = os.environ["SERVER"] + "/mistral"
message = {"role": "assistant", "content": "4"}
choice = {"index": 0, "finish_reason": "stop", "message": message}
usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
answer = {"id": "1", "object": "chat.completion", "model": "m", "usage": usage, "created": 1}
answer["choices"] = [choice]
url_of_chat = url + "/v1/chat/completions"
put = urllib.request.Request(url_of_chat, json.dumps(answer).encode(), method="PUT")
urllib.request.urlopen(put)

client = Mistral(api_key="x", server_url=url)
answer = client.chat.complete(model="m", messages=[{"role": "user", "content": "2 + 2"}])
assert answer.choices[0].message.content == "4"
