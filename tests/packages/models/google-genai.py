"""Asks a model, which is a function here, and reads the answer as a class."""

import httpx
from google import genai


def server(request):
    content = {"role": "model", "parts": [{"text": "4"}]}
    return httpx.Response(200, json={"candidates": [{"content": content}]})


client = httpx.Client(transport=httpx.MockTransport(server))
client = genai.Client(api_key="x", http_options={"httpx_client": client})
assert client.models.generate_content(model="m", contents="2 + 2").text == "4"
