"""`isolet.smolagents.Executor` keeps what smolagents expects of an executor."""

from __future__ import annotations

import json
from typing import ClassVar

import failing
import pytest

smolagents = pytest.importorskip("smolagents", reason="smolagents is not installed")

from smolagents import CodeAgent, FinalAnswerTool, Model, Tool, ToolCallingAgent, tool  # noqa: E402
from smolagents.local_python_executor import (  # noqa: E402
    ExecutionTimeoutError,
    InterpreterError,
)
from smolagents.models import (  # noqa: E402
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
)

import isolet  # noqa: E402
from isolet.smolagents import Executor, ShellTool  # noqa: E402


@pytest.fixture
def executor():
    with Executor() as executor:
        executor.send_tools({"final_answer": FinalAnswerTool()})
        yield executor


class Scripted(Model):
    """A model that answers with prepared code, and keeps what it was shown."""

    def __init__(self, *codes):
        super().__init__(model_id="scripted")
        self.codes = iter(codes)
        self.shown = []

    def generate(self, messages, **_):
        self.shown.append("\n".join(str(message.content) for message in messages))
        text = f"Thought: go on.\n<code>\n{next(self.codes)}\n</code>"
        return ChatMessage(role=MessageRole.ASSISTANT, content=text)


def agent(*codes, tools=(), **options):
    options.setdefault("executor", Executor())
    return CodeAgent(tools=list(tools), model=Scripted(*codes), verbosity_level=0, **options)


class Counter(Tool):
    """A tool with state that cannot be copied."""

    name = "count"
    description = "Counts."
    inputs: ClassVar = {"step": {"type": "integer", "description": "by how much"}}
    output_type = "integer"

    def __init__(self):
        super().__init__()
        self.total = 0

    def forward(self, step: int) -> int:
        self.total += step
        return self.total


def test_output_and_logs(executor):
    found = executor("print('a')\nx = 2\nx + 1")
    assert (found.output, found.logs, found.is_final_answer) == (3, "a\n", False)
    assert executor("pass").output is None
    assert executor("object").output == "<class 'object'>"


def test_the_final_answer_is_what_the_tool_of_the_host_returns(executor):
    class Checked(FinalAnswerTool):
        def forward(self, answer):
            return {"checked": answer}

    executor.send_tools({"final_answer": Checked()})
    found = executor("print('a')\ntry:\n  final_answer([1])\nexcept Exception: pass\nprint('no')")
    assert (found.output, found.logs, found.is_final_answer) == ({"checked": [1]}, "a\n", True)
    assert executor("final_answer(answer='b')").output == {"checked": "b"}


def test_a_final_answer_that_the_tool_refuses_is_an_error(executor):
    class Picky(FinalAnswerTool):
        def forward(self, answer):
            raise ValueError("too short")

    executor.send_tools({"final_answer": Picky()})
    with pytest.raises(InterpreterError, match="ValueError: too short"):
        executor("final_answer('x')")


def test_code_cannot_end_the_run_without_the_tool(executor):
    for name in ("SUBMIT", "_isolet_finish"):
        with pytest.raises(InterpreterError, match="NameError"):
            executor(f"{name}(1)")


def test_an_error_names_the_statement_and_the_exception(executor):
    with pytest.raises(InterpreterError) as caught:
        executor("print('before')\nfor i in [1]:\n    x = 1 / 0")
    assert str(caught.value) == (
        "Code execution failed at line 'for i in [1]:\n    x = 1 / 0' due to: "
        "ZeroDivisionError: division by zero"
    )
    assert executor.state["_print_outputs"] == "before\n"
    with pytest.raises(InterpreterError, match=r"Code parsing failed on line 2 due to: SyntaxErr"):
        executor("x = 1\nx = = 2")


def test_an_error_of_a_tool_names_the_statement_that_called_it(executor):
    def lookup(key):
        raise LookupError(f"no {key}")

    executor.send_tools({"lookup": lookup})
    executor("\n" * 60 + "def look(key):\n    return lookup(key)")
    assigned = "".join(f"v{number} = {number}\n" for number in range(80))
    chained = "try:\n    look('a')\nexcept LookupError as e:\n    raise ValueError('b') from e"
    for code, statement in (
        ("x = 1\nlookup('a')", "lookup('a')"),
        (f"{assigned}look('a')", "look('a')"),
        (f"{assigned}{chained}", chained),
    ):
        with pytest.raises(InterpreterError) as caught:
            executor(code)
        assert str(caught.value).startswith(f"Code execution failed at line '{statement}' due to:")


def test_code_catches_what_a_tool_raises_by_its_class(executor):
    executor.send_tools({"read": lambda: json.loads("[1,")})
    code = "import json\ntry:\n    read()\nexcept json.JSONDecodeError as e:\n    at = e.pos\nat"
    assert executor(code).output == 3


def test_exceptions_of_tools_keep_what_they_are(executor):
    executor.send_tools({"fail": failing.fail})
    assert executor(f"{failing.CODE}seen").output == failing.SEEN


def test_the_value_of_a_last_assignment_is_the_output(executor):
    calls = []
    executor.send_tools({"search": lambda query: calls.append(query) or [query]})
    for code, output in (
        ("y = search('x')", ["x"]),
        ("a = b = y  # once more", ["x"]),
        ("d = {}\nd['k'] = 2", 2),
        ("n: int = 3", 3),
        ("n += 1", 4),
        ("a, b = 1, 2", [1, 2]),
        ("d[search('z')[0]] = 5", None),
        ("n: int", None),
    ):
        assert executor(code).output == output, code
    assert calls == ["x", "z"]


def test_a_timeout_keeps_the_variables():
    with Executor(timeout=0.2) as executor:
        executor("x = 1")
        for expected in (InterpreterError, ExecutionTimeoutError):
            with pytest.raises(expected, match=r"the limit is 0\.2 s$"):
                executor("while True: pass")
        assert executor("x").output == 1


def test_memory_that_is_too_much_is_told_without_the_names_of_other_surfaces():
    heap = "from pyodide.code import run_js\nrun_js('const k = []; for (;;) k.push({})')"
    told = r"the limit is \d+ bytes; the session is closed"
    with (
        Executor(limits=isolet.Limits(memory_bytes=128 << 20)) as executor,
        pytest.raises(InterpreterError, match=told),
    ):
        executor(heap)


def test_variables_are_sent_and_read(executor):
    executor.send_variables({"given": {"a": [1]}})
    executor("given['a'].append(2)\nmade = 'm'")
    assert executor.state["given"] == {"a": [1, 2]}
    assert executor.state["made"] == executor.state.get("made") == "m"
    assert "made" in executor.state
    assert "none" not in executor.state
    assert executor.state.get("none", 3) == 3
    with pytest.raises(KeyError):
        executor.state["none"]


def test_objects_of_the_host_go_from_tool_to_tool(executor):
    thing = object()
    executor.send_tools(
        {"make": lambda: [thing], "same": lambda x: x is thing, "final_answer": FinalAnswerTool()}
    )
    executor.send_variables({"given": thing})
    assert executor("it = make()[0]\nsame(it), same(x=given), repr(it)").output == [
        True,
        True,
        "<object of the host>",
    ]
    assert executor("final_answer(it)").output is thing
    with pytest.raises(InterpreterError, match="is on the host"):
        executor("it.size")


def test_images_go_out_and_come_back(executor):
    images = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    made = images.new("RGB", (3, 2))
    executor.send_tools({"make": lambda: made, "width": lambda image: image.width})
    assert executor("width(make())").output == 3


def test_output_is_cut(executor):
    executor.max_print_outputs_length = 100
    assert len(executor("print('a' * 5000)").logs) < 300


def test_after_cleanup_tools_and_variables_are_sent_again(executor):
    executor.send_variables({"given": 1})
    executor("x = 1")
    executor.cleanup()
    assert executor("given, 'x' in globals(), final_answer.__name__").output == [
        1,
        False,
        "final_answer",
    ]


def test_an_agent_calls_tools_keeps_state_and_answers():
    counter = Counter()
    made = agent("a = count(2)\nprint(a)", "final_answer(a + count(step=3))", tools=[counter])
    assert made.run("count") == 7
    assert counter.total == 5
    assert r"Execution logs:\n2\n" in made.model.shown[1]


def test_an_agent_sees_errors_and_what_was_printed_before():
    made = agent("print('seen')\n1 / 0", "import nothing", "final_answer('ok')")
    assert made.run("fail") == "ok"
    assert "seen" in made.model.shown[1]
    assert "due to: ZeroDivisionError: division by zero" in made.model.shown[1]
    assert "No module named 'nothing'" in made.model.shown[2]


def test_a_managed_agent_is_called_on_the_host():
    helper = agent("final_answer('forty-two')", name="helper", description="It knows the answer.")
    made = agent("print(helper(task='say it'))", "final_answer('done')", managed_agents=[helper])
    assert made.run("ask") == "done"
    assert "forty-two" in made.model.shown[1]


def test_additional_arguments_are_variables():
    made = agent("final_answer(sum(numbers))")
    assert made.run("add", additional_args={"numbers": [1, 2, 3]}) == 6


def test_a_tool_that_closes_over_a_secret_stays_on_the_host():
    secret = "s3cret"

    @tool
    def signed(text: str) -> str:
        """Signs a text.

        Args:
            text: the text.
        """
        return f"{text}:{len(secret)}"

    made = agent("final_answer(signed('a') + str('s3cret' in str(globals())))", tools=[signed])
    assert made.run("sign") == "a:6False"


def test_code_runs_commands_by_subprocess():
    code = """import subprocess
open("names.txt", "w").write("b\\na\\n")
ran = subprocess.run("sort names.txt | head -1", shell=True, capture_output=True, text=True)
final_answer(ran.stdout)"""
    assert agent(code).run("?") == "a\n"


class Calling(Model):
    """A model that makes prepared calls of tools, and keeps what it was shown."""

    def __init__(self, *calls):
        super().__init__(model_id="calling")
        self.calls = iter(calls)
        self.shown = []

    def generate(self, messages, **_):
        self.shown.append("\n".join(str(message.content) for message in messages))
        name, arguments = next(self.calls)
        function = ChatMessageToolCallFunction(name=name, arguments=arguments)
        call = ChatMessageToolCall(function=function, id=name, type="function")
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[call])


def test_an_agent_that_calls_tools_has_the_shell(sandbox):
    with sandbox.session() as session:
        session.files.put("names.txt", "b\na\n")
        model = Calling(
            ("shell", {"command": "cd /tmp; export NAME=a; sort ~/names.txt; ls nosuch"}),
            ("shell", {"command": "pwd; echo $NAME"}),
            ("final_answer", {"answer": "done"}),
        )
        agent = ToolCallingAgent([ShellTool(session)], model=model, verbosity_level=0)
        assert agent.run("?") == "done"
        assert r"a\nb\n" in model.shown[1]
        assert "the run exited with status 2" in model.shown[1]
        assert r"/tmp\na" in model.shown[2]


def test_the_shell_tool_has_a_time_and_a_length(sandbox):
    with sandbox.session() as session:
        shell = ShellTool(session, timeout=1, max_chars=10)
        assert shell(command="echo a") == "a"
        assert "characters left out" in shell(command="seq 1 100")
        assert "characters left out" in shell(command="sleep 20")
