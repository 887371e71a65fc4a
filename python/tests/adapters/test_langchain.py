"""`isolet.langchain.CodeInterpreterMiddleware` gives LangChain's agents a tool that runs code."""

from __future__ import annotations

import asyncio

import failing
import pytest

pytest.importorskip("langchain", reason="LangChain is not installed")

from langchain.agents import create_agent
from langchain.agents.middleware import ShellToolMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from isolet.langchain import CodeInterpreterMiddleware, ExecutionPolicy


class Scripted(GenericFakeChatModel):
    """A model that runs prepared codes and commands, and keeps what it was told."""

    told: list

    def bind_tools(self, tools, **_):
        self.told.append([each.name for each in tools])
        return self

    def _generate(self, messages, *args, **kwargs):
        self.told.append(str(messages[0].content))
        return super()._generate(messages, *args, **kwargs)


def scripted(*turns):
    messages = []
    for codes in turns:
        for index, code in enumerate(codes):
            name, arguments = code if isinstance(code, tuple) else ("run_python", {"code": code})
            call = {"name": name, "args": arguments, "id": str(index)}
            messages.append(AIMessage(content="", tool_calls=[call]))
        messages.append(AIMessage(content="done"))
    return Scripted(messages=iter(messages), told=[])


def answers(result):
    return [message.content for message in result["messages"] if message.type == "tool"]


ASK = {"messages": [{"role": "user", "content": "?"}]}


@tool
def add(a: int, b: int = 2) -> dict:
    """Adds two numbers."""
    return {"sum": a + b}


@pytest.fixture
def middleware():
    middleware = CodeInterpreterMiddleware([add])
    yield middleware
    middleware.close()


def test_state_output_and_errors(middleware):
    model = scripted(["x = 1", "print('a')\nx + 1", "1 / 0"])
    found = answers(create_agent(model, middleware=[middleware]).invoke(ASK))
    assert found[:2] == ["[no output]", "a\n2"]
    assert found[2].endswith("ZeroDivisionError: division by zero")


def test_tools_are_functions_that_the_model_is_told_of(middleware):
    model = scripted(["[add(a=i)['sum'] for i in range(3)], add(1, 1)", "add(a='x')"])
    agent = create_agent(model, middleware=[middleware], system_prompt="Be brief.")
    found = answers(agent.invoke(ASK))
    assert found[0] == "([2, 3, 4], {'sum': 2})"
    assert "valid integer" in found[1]
    assert ["run_python"] in model.told
    told = next(each for each in model.told if isinstance(each, str))
    assert "Be brief." in told
    assert "- add(a: integer, b: integer = ...): Adds two numbers." in told


@pytest.mark.parametrize("function", [failing.fail, failing.fail_later])
def test_exceptions_of_tools_keep_what_they_are(function):
    middleware = CodeInterpreterMiddleware([tool("fail")(function)])
    agent = create_agent(scripted([f"{failing.CODE}seen"]), middleware=[middleware])
    result = asyncio.run(agent.ainvoke(ASK))
    assert answers(result) == [repr(failing.SEEN)]
    middleware.close()


def test_a_thread_keeps_its_variables_and_others_do_not_see_them(middleware):
    model = scripted(["x = 1"], ["x"], ["'x' in globals()"])
    agent = create_agent(model, middleware=[middleware], checkpointer=InMemorySaver())
    one = {"configurable": {"thread_id": "one"}}
    agent.invoke(ASK, one)
    assert answers(agent.invoke(ASK, one))[-1] == "1"
    assert answers(agent.invoke(ASK, {"configurable": {"thread_id": "two"}})) == ["False"]


def test_a_session_of_a_turn_ends_with_it():
    middleware = CodeInterpreterMiddleware(mode="turn")
    model = scripted(["x = 1"], ["'x' in globals()"])
    agent = create_agent(model, middleware=[middleware], checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "one"}}
    agent.invoke(ASK, config)
    assert answers(agent.invoke(ASK, config))[-1] == "False"


def test_asynchronous_tools_run_on_the_loop_of_the_agent():
    loops = []

    @tool
    async def late(text: str) -> str:
        """Waits."""
        await asyncio.sleep(0)
        loops.append(asyncio.get_running_loop())
        return text.upper()

    async def main():
        middleware = CodeInterpreterMiddleware([late])
        agent = create_agent(scripted(["late(text='a')"]), middleware=[middleware])
        found = answers(await agent.ainvoke(ASK))
        middleware.close()
        return found, loops == [asyncio.get_running_loop()]

    assert asyncio.run(main()) == (["'A'"], True)


def test_old_sessions_are_ended():
    middleware = CodeInterpreterMiddleware(max_sessions=1)
    model = scripted(["x = 1"], ["x = 1"], ["'x' in globals()"])
    agent = create_agent(model, middleware=[middleware], checkpointer=InMemorySaver())
    for thread, found in (("one", "[no output]"), ("two", "[no output]"), ("one", "False")):
        config = {"configurable": {"thread_id": thread}}
        assert answers(agent.invoke(ASK, config))[-1] == found
    middleware.close()


def shell(command):
    return "run_shell", {"command": command}


@pytest.mark.parametrize("is_async", [False, True])
def test_commands_run_in_the_session_of_the_code(is_async):
    middleware = CodeInterpreterMiddleware([add], shell=True)
    model = scripted(
        ["open('a.txt', 'w').write('b\\na\\n'); None", shell("sort a.txt; mkdir sub; cd sub; X=1")],
        [shell("pwd; echo $X; exit 3"), "import os; os.getcwd(), add(a=1)"],
    )
    agent = create_agent(model, middleware=[middleware], checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "one"}}
    for _ in range(2):
        result = asyncio.run(agent.ainvoke(ASK, config)) if is_async else agent.invoke(ASK, config)
    middleware.close()
    assert answers(result) == [
        "[no output]",
        "a\nb",
        "/home/user/sub\n1\nthe run exited with status 3",
        "('/home/user/sub', {'sum': 3})",
    ]
    assert ["run_python", "run_shell"] in model.told


def test_calls_of_both_tools_at_once_take_turns():
    middleware = CodeInterpreterMiddleware(shell=True)
    calls = [shell("sleep 0.1; echo 1"), ("run_python", {"code": "2"}), shell("echo 3")]
    made = [
        {"name": name, "args": arguments, "id": str(index)}
        for index, (name, arguments) in enumerate(calls)
    ]
    messages = [AIMessage(content="", tool_calls=made), AIMessage(content="done")]
    model = Scripted(messages=iter(messages), told=[])
    found = answers(create_agent(model, middleware=[middleware]).invoke(ASK))
    middleware.close()
    assert found == ["1", "2", "3"]


def langchains_shell(tmp_path, *commands, env=None, **options):
    calls = [("shell", {"command": command}) for command in commands]
    policy = ExecutionPolicy(**options)
    middleware = ShellToolMiddleware(tmp_path, execution_policy=policy, env=env)
    return answers(create_agent(scripted(calls), middleware=[middleware]).invoke(ASK))


def test_langchains_own_shell_tool_runs_in_isolet(tmp_path):
    (tmp_path / "a.txt").write_text("b\na\n")
    found = langchains_shell(
        tmp_path,
        "sort a.txt > sorted.txt; pwd; cat sorted.txt",
        "mkdir -p sub && cd sub && ls nosuch",
        'pwd; echo "$GREETING"; python3 -c "print(6 * 7)"; cat /etc/hostname',
        env={"GREETING": "it's $HOME"},
    )
    assert found[0] == "/workspace\na\nb\n"
    assert "nosuch" in found[1]
    assert "Exit code: 2" in found[1]
    assert found[2] == "/workspace/sub\nit's $HOME\n42\nlocalhost\n"
    assert (tmp_path / "sorted.txt").read_text() == "a\nb\n"


def test_langchains_own_shell_tool_goes_on_after_a_timeout(tmp_path):
    found = langchains_shell(tmp_path, "sleep 30", "echo on", command_timeout=1)
    assert "timed out" in found[0].lower()
    assert found[1] == "on\n"


def test_options_of_the_shell_are_those_of_the_command(tmp_path):
    assert langchains_shell(tmp_path, "echo $A", options=["--env", "A=b"]) == ["b\n"]
    with pytest.raises(RuntimeError, match="--nonsense"):
        langchains_shell(tmp_path, "echo", options=["--nonsense"])
