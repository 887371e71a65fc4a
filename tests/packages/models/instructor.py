"""Reads a model's answer, which the script has put on a server, as a class."""
# With: instructor<1.4

import json
import os
import urllib.request

import instructor
from openai import OpenAI
from pydantic import BaseModel


class City(BaseModel):
    name: str
    people: int


url = os.environ["SERVER"] + "/instructor"
call = {"name": "City", "arguments": '{"name": "Oslo", "people": 700000}'}
message = {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": call}]}
choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
put = urllib.request.Request(url + "/chat/completions", json.dumps(answer).encode(), method="PUT")
urllib.request.urlopen(put)

client = instructor.from_openai(OpenAI(api_key="x", base_url=url))
messages = [{"role": "user", "content": "Which city?"}]
city = client.chat.completions.create(model="m", response_model=City, messages=messages)
assert isinstance(city, City) and (city.name, city.people) == ("Oslo", 700000)
