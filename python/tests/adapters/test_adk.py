"""`isolet.adk.CodeExecutor` runs code of Google ADK's agents."""

from __future__ import annotations

import asyncio
import base64

import pytest

pytest.importorskip("google.adk", reason="Google ADK is not installed")

from google.adk.agents import LlmAgent
from google.adk.artifacts import InMemoryArtifactService
from google.adk.code_executors.code_execution_utils import (
    CodeExecutionInput,
    File,
)
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from isolet.adk import CodeExecutor


@pytest.fixture
def executor():
    executor = CodeExecutor()
    yield executor
    executor.close()


def run(executor, code, number="one", files=()):
    return executor.execute_code(None, CodeExecutionInput(code, list(files), number))


def test_output_value_and_exit_code(executor):
    found = run(executor, "print('a')\n1 + 1")
    assert (found.stdout, found.stderr, found.exit_code) == ("a\n2\n", "", 0)


def test_an_exception_is_a_standard_error(executor):
    found = run(executor, "print('a')\n1 / 0")
    assert found.stdout == "a\n"
    assert "ZeroDivisionError: division by zero" in found.stderr
    assert found.exit_code == 1
    warned = run(executor, "import sys; print('careful', file=sys.stderr)")
    assert (warned.stderr, warned.exit_code) == ("", 0)


def test_each_execution_id_has_its_own_variables(executor):
    run(executor, "x = 1", "one")
    assert run(executor, "x", "one").stdout == "1\n"
    assert "NameError" in run(executor, "x", "two").stderr
    stateless = CodeExecutor(stateful=False)
    run(stateless, "x = 1")
    assert "NameError" in run(stateless, "x").stderr


def test_old_sessions_are_ended():
    executor = CodeExecutor(max_sessions=1)
    run(executor, "x = 1", "one")
    run(executor, "x = 1", "two")
    assert "NameError" in run(executor, "x", "one").stderr
    executor.close()


def test_files_go_in_and_out(executor):
    files = [
        File("a.csv", base64.b64encode(b"a,b").decode(), "text/csv"),
        File("b.txt", "plain text!"),
    ]
    code = "open('c.csv', 'w').write(open('a.csv').read() + open('b.txt').read())"
    (made,) = run(executor, code, files=files).output_files
    assert (made.name, made.content, made.mime_type) == ("c.csv", b"a,bplain text!", "text/csv")


def test_pictures_are_output_files(executor):
    code = "class P:\n  def _repr_png_(self): return b'png'\nP()"
    (made,) = run(executor, code).output_files
    assert (made.name, made.content, made.mime_type) == ("display_1.png", b"png", "image/png")


def test_a_timeout_is_told():
    executor = CodeExecutor(timeout_seconds=1)
    found = run(executor, "while True: pass")
    assert "the limit is 1 s" in found.stderr
    assert found.exit_code == 1
    executor.close()


def test_an_agent_runs_code_and_keeps_its_state(executor):
    asked = []

    class Scripted(BaseLlm):
        async def generate_content_async(self, llm_request, stream=False):
            asked.append(str(llm_request.contents))
            texts = ["```python\nx = 6\nprint('set')\n```", "```python\nprint(x * 7)\n```", "done"]
            text = texts[len(asked) - 1]
            content = types.Content(role="model", parts=[types.Part(text=text)])
            yield LlmResponse(content=content)

    agent = LlmAgent(name="coder", model=Scripted(model="scripted"), code_executor=executor)

    async def main():
        sessions = InMemorySessionService()
        session = await sessions.create_session(app_name="app", user_id="user")
        runner = Runner(
            agent=agent,
            app_name="app",
            session_service=sessions,
            artifact_service=InMemoryArtifactService(),
        )
        message = types.Content(role="user", parts=[types.Part(text="?")])
        events = runner.run_async(user_id="user", session_id=session.id, new_message=message)
        return [event async for event in events]

    events = asyncio.run(main())
    outputs = [
        part.code_execution_result.output
        for event in events
        for part in (event.content.parts if event.content else ())
        if part.code_execution_result
    ]
    assert ["set" in outputs[0], "42" in outputs[1]] == [True, True]
    assert events[-1].content.parts[0].text == "done"
