"""Asks a model, which is a function here, and reads the answer as a class."""

import httpx
from anthropic import Anthropic


def server(request):
    answer = {"id": "1", "type": "message", "role": "assistant", "model": "m"}
    answer |= {"content": [{"type": "text", "text": "4"}], "stop_reason": "end_turn"}
    return httpx.Response(200, json=answer | {"usage": {"input_tokens": 1, "output_tokens": 1}})


client = Anthropic(api_key="x", http_client=httpx.Client(transport=httpx.MockTransport(server)))
messages = [{"role": "user", "content": "2 + 2"}]
answer = client.messages.create(model="m", max_tokens=9, messages=messages)
assert answer.content[0].text == "4"
