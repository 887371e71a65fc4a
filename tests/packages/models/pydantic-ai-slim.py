"""Runs an agent that calls a tool of a model of its own."""

from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

agent = Agent(TestModel())


@agent.tool_plain
def double(n: int) -> int:
    return n * 2


assert "double" in agent.run_sync("2 + 2").output
