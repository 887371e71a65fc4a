"""`isolet.openai_agents.ShellExecutor` runs the commands of OpenAI Agents' shell tool."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("agents", reason="OpenAI Agents is not installed")

from agents import Agent, RunConfig, Runner, ShellTool
from agents.testing import ScriptedModel, assistant_message
from openai.types.responses import ResponseFunctionShellToolCall
from openai.types.responses.response_function_shell_tool_call import Action

import isolet.aio
from isolet.openai_agents import ShellExecutor

FOREVER = """python3 -c '
while True:
  try:
    while True: pass
  except BaseException: pass'"""
"""A command that cannot be interrupted: it ends its interpreter."""

QUIET = RunConfig(tracing_disabled=True)


def call(number, *commands, **options):
    return ResponseFunctionShellToolCall(
        id=f"sh_{number}",
        call_id=f"call_{number}",
        type="shell_call",
        status="completed",
        action=Action(commands=list(commands), **options),
    )


def agent(executor, *turns):
    model = ScriptedModel([*[list(calls) for calls in turns], [assistant_message("done")]])
    return Agent(name="agent", model=model, tools=[ShellTool(executor=executor)])


def outputs(result):
    """What the commands of each call did, as the model gets it."""
    return [
        item.raw_item["output"] for item in result.new_items if item.type == "tool_call_output_item"
    ]


@pytest.fixture
def session(sandbox):
    with sandbox.session() as session:
        yield session


COMMANDS = [
    [call(1, "echo a > a.txt; cd /tmp; export X=1", "cat a.txt; echo b >&2; echo $X; exit 3")],
    [call(2, "cat a.txt"), call(3, "sleep 0.1; cat a.txt")],
]


def check(result):
    first, *others = outputs(result)
    assert [each["stdout"] for each in first] == ["", "a\n\n"]
    assert [each["stderr"] for each in first] == ["", "b\n"]
    assert [each["outcome"] for each in first] == [
        {"type": "exit", "exit_code": 0},
        {"type": "exit", "exit_code": 3},
    ]
    assert [each[0]["stdout"] for each in others] == ["a\n"] * 2


def test_commands_of_a_model_run_in_the_session(session):
    check(Runner.run_sync(agent(ShellExecutor(session), *COMMANDS), "?", run_config=QUIET))
    assert session.files.get("a.txt") == b"a\n"


def test_commands_of_a_model_run_in_an_asynchronous_session():
    async def main():
        async with isolet.aio.Sandbox() as sandbox, sandbox.session() as session:
            executor = ShellExecutor(session)
            return await Runner.run(agent(executor, *COMMANDS), "?", run_config=QUIET)

    check(asyncio.run(main()))


def test_a_command_that_takes_too_long_ends_its_call(session):
    turns = [[call(1, "printf a; sleep 20", "echo never", timeout_ms=500)], [call(2, "echo b")]]
    result = Runner.run_sync(agent(ShellExecutor(session), *turns), "?", run_config=QUIET)
    [late], [after] = outputs(result)
    assert late["outcome"] == {"type": "timeout"}
    assert late["stdout"] == "a"
    assert "terminated" in late["stderr"]
    assert after["stdout"] == "b\n"


def test_the_executor_has_a_time_and_a_length_of_its_own(session):
    executor = ShellExecutor(session, timeout=0.5, max_chars=10)
    turns = [[call(1, "sleep 20")], [call(2, "seq 1 100")]]
    late, [long] = outputs(Runner.run_sync(agent(executor, *turns), "?", run_config=QUIET))
    assert late[0]["outcome"] == {"type": "timeout"}
    assert long["stdout"] == "1\n2\n3\n4\n5\n"


def test_a_call_names_the_length_of_its_output(session):
    turns = [[call(1, "printf abcdef", "echo x; echo yz >&2", max_output_length=9)]]
    result = Runner.run_sync(agent(ShellExecutor(session), *turns), "?", run_config=QUIET)
    [[first, second]] = outputs(result)
    assert (first["stdout"], second["stdout"], second["stderr"]) == ("abcdef", "x\n", "y")


def test_a_session_that_has_ended_is_started_again():
    with isolet.Sandbox(checkpoint=False) as sandbox, sandbox.session() as session:
        turns = [[call(1, f"echo a > a.txt; {FOREVER}", timeout_ms=1500)], [call(2, "ls")]]
        result = Runner.run_sync(agent(ShellExecutor(session), *turns), "?", run_config=QUIET)
    [ended], [after] = outputs(result)
    assert ended["stderr"].endswith("The session has ended: its files are lost.\n")
    assert after["stdout"] == ""
