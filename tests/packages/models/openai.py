"""Asks a model, which is a function here, and reads the answer as a class."""

import httpx
from openai import OpenAI


def server(request):
    message = {"role": "assistant", "content": "4"}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
    return httpx.Response(200, json=answer | {"choices": [choice]})


client = OpenAI(api_key="x", http_client=httpx.Client(transport=httpx.MockTransport(server)))
messages = [{"role": "user", "content": "2 + 2"}]
answer = client.chat.completions.create(model="m", messages=messages)
assert answer.choices[0].message.content == "4"
