"""Runs an agent, whose model's answer the script has put on a server."""
# With: openai-agents<0.3, mcp<1.10

import asyncio
import json
import os
import urllib.request

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI

url = os.environ["SERVER"] + "/agents"
message = {"role": "assistant", "content": "4"}
choice = {"index": 0, "finish_reason": "stop", "message": message}
answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
put = urllib.request.Request(url + "/chat/completions", json.dumps(answer).encode(), method="PUT")
urllib.request.urlopen(put)

set_tracing_disabled(True)
client = AsyncOpenAI(api_key="x", base_url=url)
agent = Agent("a", model=OpenAIChatCompletionsModel("m", client))
assert asyncio.run(Runner.run(agent, "2 + 2")).final_output == "4"
