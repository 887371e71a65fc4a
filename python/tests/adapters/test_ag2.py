"""`isolet.ag2.CodeEnvironment` runs code of AG2's `SandboxCodeTool`."""

from __future__ import annotations

import asyncio
import json

import pytest

pytest.importorskip("ag2", reason="AG2 is not installed")

from ag2 import Agent
from ag2.events import ToolCallEvent
from ag2.testing import TestConfig
from ag2.tools import SandboxCodeTool
from ag2.tools.code.environment.base import CodeEnvironment as Protocol

from isolet.ag2 import CodeEnvironment


@pytest.fixture
def environment():
    with CodeEnvironment() as environment:
        yield environment


def run(environment, code, language="python"):
    found = asyncio.run(environment.run(code, language))
    return found.output, found.exit_code


def test_it_is_a_code_environment(environment):
    assert isinstance(environment, Protocol)
    assert environment.supported_languages == ("python",)


def test_output_exit_code_and_state(environment):
    assert run(environment, "x = 2\nprint('a')") == ("a", 0)
    assert run(environment, "x + 1") == ("3", 0)
    assert run(environment, "raise SystemExit(3)")[1] == 3
    assert run(environment, "1", "bash") == (
        "the language is `bash`, and only `python` runs here",
        1,
    )


def test_an_exception_is_output(environment):
    output, code = run(environment, "1 / 0")
    assert output.endswith("ZeroDivisionError: division by zero")
    assert code == 1


def test_after_close_it_starts_afresh(environment):
    run(environment, "x = 1")
    environment.close()
    assert run(environment, "'x' in globals()") == ("False", 0)


def test_an_agent_runs_code(environment):
    arguments = json.dumps({"code": "6 * 7", "language": "python"})
    agent = Agent(
        "coder",
        config=TestConfig(ToolCallEvent(name="run_code", arguments=arguments), "done"),
        tools=[SandboxCodeTool(environment)],
    )

    async def main():
        reply = await agent.ask("?")
        return reply, [str(event) for event in await reply.context.stream.history.get_events()]

    reply, events = asyncio.run(main())
    assert reply.body == "done"
    assert any("42" in event for event in events)
