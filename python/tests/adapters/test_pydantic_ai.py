"""`isolet.pydantic_ai.CodeMode` gives Pydantic AI's agents a tool that runs code."""

from __future__ import annotations

import asyncio

import failing
import pytest

pytest.importorskip("pydantic_ai", reason="Pydantic AI is not installed")

from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.messages import (
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.toolsets import FunctionToolset

from isolet.pydantic_ai import CodeMode


class Scripted:
    """A model that runs prepared codes, and keeps what it was answered."""

    def __init__(self, *codes):
        self.codes = list(codes)
        self.answers = []
        self.info = None

    def __call__(self, messages, info):
        self.info = info
        for part in messages[-1].parts:
            if isinstance(part, (ToolReturnPart, RetryPromptPart)):
                self.answers.append(part.content)
        if len(self.answers) == len(self.codes):
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart("run_python", {"code": self.codes[len(self.answers)]})])


def answers(toolset, *codes, **options):
    scripted = Scripted(*codes)
    agent = Agent(FunctionModel(scripted), toolsets=[toolset], **options)
    assert agent.run_sync("?", deps="deps").output == "done"
    return scripted


def test_state_output_and_errors():
    found = answers(CodeMode(), "x = 1", "print('a')\nx + 1", "1 / x - 1\n1 / 0", "x").answers
    assert found[:2] == ["[no output]", "a\n2"]
    assert found[2].endswith("ZeroDivisionError: division by zero")
    assert found[3] == "1"


def test_tools_are_functions_with_validated_arguments_and_the_context():
    def add(ctx: RunContext[str], a: int, b: int = 2) -> dict:
        """Adds two numbers."""
        return {"sum": a + b, "deps": ctx.deps}

    async def shout(text: str) -> str:
        await asyncio.sleep(0)
        if not text:
            raise ModelRetry("give a text")
        return text.upper()

    found = answers(
        CodeMode(FunctionToolset([add, shout])),
        "[add(a=i)['sum'] for i in range(3)], add(1, 1)",
        "shout(text='a') + shout(text='b')",
        "try:\n    shout(text='')\nexcept RuntimeError as e:\n    print(e)",
        "add(a='x')",
    )
    assert found.answers[0] == "([2, 3, 4], {'sum': 2, 'deps': 'deps'})"
    assert found.answers[1] == "'AB'"
    assert found.answers[2] == "give a text"
    assert "valid integer" in found.answers[3]
    (tool,) = found.info.function_tools
    assert "- add(a: int, b: int = ...): Adds two numbers." in tool.description


@pytest.mark.parametrize("function", [failing.fail, failing.fail_later])
def test_exceptions_of_tools_keep_what_they_are(function):
    toolset = FunctionToolset()
    toolset.add_function(function, name="fail")
    assert answers(CodeMode(toolset), f"{failing.CODE}seen").answers == [repr(failing.SEEN)]


def test_runs_have_sessions_of_their_own():
    toolset = CodeMode()
    answers(toolset, "x = 1")
    assert answers(toolset, "'x' in globals()").answers == ["False"]


def test_functions_may_be_given_as_a_list():
    assert answers(CodeMode([abs_of]), "abs_of(x=-3)").answers == ["3"]


def abs_of(x: int) -> int:
    """Returns the absolute value."""
    return abs(x)


def test_a_timeout_and_long_output_are_told():
    found = answers(CodeMode(timeout=0.2, max_chars=200), "while True: pass", "'a' * 1000").answers
    assert "the limit is 0.2 s" in found[0]
    assert "characters left out" in found[1]
