"""`isolet.function_tools.tool_function` makes a tool for models of a session."""

from __future__ import annotations

import asyncio
import inspect
import threading
import typing

import failing
import pytest

import isolet.aio
from isolet.function_tools import shell_function, tool_function

STUBBORN = "while True:\n  try:\n    while True: pass\n  except BaseException: pass"
"""Code that cannot be interrupted: it ends its interpreter."""


@pytest.fixture
def session(sandbox):
    with sandbox.session() as session:
        yield session


def test_it_reads_as_a_plain_function(session):
    run_python = tool_function(session)
    assert run_python.__name__ == "run_python"
    assert typing.get_type_hints(run_python) == {"code": str, "return": str}
    assert list(inspect.signature(run_python).parameters) == ["code"]
    assert "code: The Python code" in run_python.__doc__
    assert tool_function(session, name="py", doc="Runs.").__doc__ == "Runs."


def test_it_keeps_state_and_returns_output_value_or_traceback(session):
    run_python = tool_function(session)
    assert run_python("x = 1") == "[no output]"
    assert run_python("print('a')\nx") == "a\n1"
    assert run_python("print('a')") == "a"
    assert run_python("1 / 0").endswith("ZeroDivisionError: division by zero")


def test_exceptions_of_tools_keep_what_they_are(session):
    session.register(failing.fail)
    assert tool_function(session)(f"{failing.CODE}seen") == repr(failing.SEEN)


def test_long_output_loses_its_middle(session):
    found = tool_function(session, max_chars=100)("print('a' * 50 + 'b' * 900 + 'c' * 50)")
    assert found.startswith("a" * 50)
    assert found.endswith("c" * 50)
    assert "[900 characters left out]" in found


def test_displays_are_mentioned(session):
    code = "class P:\n  def _repr_png_(self): return b'x'\n  def __repr__(self): return 'P'\nP()"
    assert tool_function(session)(code) == "P\n[displayed: image/png, text/plain]"


def test_a_timeout_is_told(session):
    assert "the limit is 0.2 s" in tool_function(session, timeout=0.2)("while True: pass")


def test_a_session_that_has_ended_is_started_again():
    with isolet.Sandbox(checkpoint=False) as sandbox, sandbox.session() as session:
        run_python = tool_function(session, timeout=0.2)
        run_python("x = 1")
        assert run_python(STUBBORN).endswith("are lost]")
        assert run_python("'x' in globals()").endswith("are lost]\nFalse")


def test_a_session_goes_on_from_its_checkpoint_and_the_model_learns_of_it(session):
    run_python = tool_function(session, timeout=0.2)
    run_python("x = 1")
    session.checkpoint()
    assert run_python(f"x = 2\n{STUBBORN}").endswith("what the run changed is lost.]")
    assert run_python("x") == "1"


def test_threads_wait_for_each_other(session):
    run_python = tool_function(session)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(run_python("sum(range(100000))")))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == ["4999950000"] * 8


def test_an_asynchronous_session_gives_a_coroutine_function():
    async def main():
        policy = {"checkpoint": False}
        async with isolet.aio.Sandbox(**policy) as sandbox, sandbox.session() as session:
            run_python = tool_function(session)
            assert inspect.iscoroutinefunction(run_python)
            found = await asyncio.gather(run_python("x = 2"), run_python("x + 1"))
            stubborn = tool_function(session, timeout=0.2)
            return [*found, await stubborn(STUBBORN), await stubborn("'x' in globals()")]

    first, second, lost, again = asyncio.run(main())
    assert (first, second) == ("[no output]", "3")
    assert lost.endswith("are lost]")
    assert again.endswith("are lost]\nFalse")


def test_the_shell_reads_as_a_plain_function(session):
    run_shell = shell_function(session)
    assert run_shell.__name__ == "run_shell"
    assert typing.get_type_hints(run_shell) == {"command": str, "return": str}
    assert list(inspect.signature(run_shell).parameters) == ["command"]
    assert "command: One or several commands" in run_shell.__doc__
    assert shell_function(session, name="sh", doc="Runs.").__doc__ == "Runs."


def test_the_shell_keeps_state_and_returns_output_and_status(session):
    run_shell = shell_function(session, timeout=2)
    assert run_shell("mkdir -p sub; cd sub; x=1") == "[no output]"
    assert run_shell("pwd; echo $x >&2") == "/home/user/sub\n1"
    assert run_shell("echo a; ls nosuch").endswith("the run exited with status 2")
    assert "the limit is 2 s" in run_shell("sleep 20")
    assert tool_function(session)("import os; os.getcwd()") == "'/home/user/sub'"


def test_functions_of_one_session_take_turns(session):
    run_python, run_shell = tool_function(session), shell_function(session)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(run_shell("sleep 0.05; echo 1"))),
        threading.Thread(target=lambda: found.append(run_python("1"))),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == ["1"] * 2


def test_the_shell_of_an_asynchronous_session_is_a_coroutine_function():
    async def main():
        async with isolet.aio.Sandbox() as sandbox, sandbox.session() as session:
            run_python, run_shell = tool_function(session), shell_function(session)
            assert inspect.iscoroutinefunction(run_shell)
            return await asyncio.gather(run_shell("sleep 0.05; echo 1"), run_python("2"))

    assert asyncio.run(main()) == ["1", "2"]


def test_openai_agents_makes_a_tool_of_it(session):
    agents = pytest.importorskip("agents", reason="OpenAI Agents is not installed")
    made = agents.function_tool(tool_function(session))
    assert made.name == "run_python"
    assert made.params_json_schema["properties"]["code"]["description"]


def test_pydantic_ai_calls_it(session):
    pytest.importorskip("pydantic_ai", reason="Pydantic AI is not installed")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    def model(messages, info):
        last = messages[-1].parts[-1]
        if isinstance(last, ToolReturnPart):
            return ModelResponse([TextPart(f"it is {last.content}")])
        assert info.function_tools[0].description
        return ModelResponse([ToolCallPart("run_python", {"code": "6 * 7"})])

    agent = Agent(FunctionModel(model), tools=[tool_function(session)])
    assert agent.run_sync("?").output == "it is 42"


def test_openai_agents_calls_it(session):
    agents = pytest.importorskip("agents", reason="OpenAI Agents is not installed")
    from agents.tool_context import ToolContext

    made = agents.function_tool(tool_function(session))
    arguments = '{"code": "6 * 7"}'
    context = ToolContext(
        context=None, tool_name="run_python", tool_call_id="1", tool_arguments=arguments
    )
    assert asyncio.run(made.on_invoke_tool(context, arguments)) == "42"


def test_llama_index_calls_it(session):
    pytest.importorskip("llama_index.core", reason="LlamaIndex is not installed")
    from llama_index.core.tools import FunctionTool

    made = FunctionTool.from_defaults(tool_function(session))
    assert made.metadata.name == "run_python"
    assert made.call(code="6 * 7").content == "42"


def test_agno_calls_it(session):
    pytest.importorskip("agno", reason="agno is not installed")
    from agno.tools.function import Function, FunctionCall

    made = Function.from_callable(tool_function(session))
    assert made.name == "run_python"
    assert made.parameters["properties"]["code"]["type"] == "string"
    assert FunctionCall(function=made, arguments={"code": "6 * 7"}).execute().result == "42"
