"""`isolet.dspy.Interpreter` keeps what DSPy expects of an interpreter."""

from __future__ import annotations

import asyncio
import collections
import contextvars
import functools
import json
import threading
import zipfile

import failing
import pytest

dspy = pytest.importorskip("dspy", reason="DSPy is not installed")

from dspy.primitives.code_interpreter import (  # noqa: E402
    CodeExecutionError,
    CodeInterpreter,
    CodeInterpreterError,
    FinalOutput,
)
from dspy.utils.callback import BaseCallback  # noqa: E402

import isolet  # noqa: E402
from isolet.dspy import Interpreter  # noqa: E402


@pytest.fixture
def interpreter():
    with Interpreter() as interpreter:
        yield interpreter


class Scripted(dspy.LM):
    """A model that answers with prepared texts, and keeps what it was asked."""

    def __init__(self, answers):
        super().__init__("openai/scripted", cache=False)
        self.answers = iter(answers)
        self.prompts = []

    def __call__(self, prompt=None, messages=None, **_):
        self.prompts.append(prompt or messages[-1]["content"])
        return [next(self.answers)]

    async def acall(self, prompt=None, messages=None, **_):
        return self(prompt, messages)


def step(code):
    fields = {"reasoning": "one step", "code": f"```python\n{code}\n```"}
    return "".join(f"[[ ## {name} ## ]]\n{text}\n\n" for name, text in fields.items())


def configured(lm, **options):
    return dspy.context(
        lm=lm, adapter=dspy.ChatAdapter(), interpreter_factory=Interpreter, **options
    )


def test_it_is_a_code_interpreter(interpreter):
    assert isinstance(interpreter, CodeInterpreter)


def test_output_is_what_was_printed_or_the_last_value(interpreter):
    assert interpreter.execute("print('a')") == "a\n"
    assert interpreter.execute("[1, 2]") == [1, 2]
    assert interpreter.execute("x = 1") is None
    assert interpreter.execute("print('a')\n'b'") == "a\n'b'"
    assert interpreter.execute("class A:\n  def __repr__(self): return '<A>'\nA()") == "<A>"


def test_state_is_kept_and_variables_are_bound_each_time(interpreter):
    interpreter.execute("y = x + 1\nx = 'rebound'", {"x": 1})
    assert interpreter.execute("x, y", {"x": 1}) == [1, 2]


def test_a_long_text_is_bound_again(interpreter):
    text = "ä" * 100_000
    assert interpreter.execute("n = len(text)\ntext = 'gone'\nn", {"text": text}) == 100_000
    assert interpreter.execute("text == 'ä' * 100_000", {"text": text}) is True
    assert interpreter.execute("text == 'b' * 100_000", {"text": "b" * 100_000}) is True
    interpreter.execute("import sys; del sys.modules['_isolet_kept']")
    assert interpreter.execute("len(text)", {"text": text}) == 100_000


@pytest.mark.parametrize("name", ["1x", "for", "a b", "a=1;b"])
def test_a_name_that_is_no_variable_is_refused(interpreter, name):
    with pytest.raises(CodeInterpreterError, match="Invalid variable name"):
        interpreter.execute("1", {name: 1})


def test_a_value_that_cannot_cross_is_refused(interpreter):
    with pytest.raises(CodeInterpreterError, match="Unsupported value type: object"):
        interpreter.execute("1", {"x": object()})
    assert interpreter.execute("1") == 1


def test_an_exception_reads_as_dspys_own_interpreter_says_it(interpreter):
    with pytest.raises(CodeExecutionError) as caught:
        interpreter.execute("1 / 0")
    assert str(caught.value) == "ZeroDivisionError: ['division by zero']"
    for code, text in [
        ("raise SystemExit(3)", "SystemExit: [3]"),
        ("raise SystemExit('why')", "SystemExit: ['why']"),
        ("raise SystemExit(print)", "SystemExit: [1]"),
        ("class Exit(SystemExit): pass\nraise Exit(0)", "Exit: [0]"),
    ]:
        with pytest.raises(CodeExecutionError) as raised:
            interpreter.execute(code)
        assert str(raised.value) == text
    assert interpreter.execute("1") == 1


def test_wrong_syntax_is_a_syntax_error(interpreter):
    with pytest.raises(SyntaxError, match=r"Invalid Python syntax. message: invalid syntax"):
        interpreter.execute("x = = 1")


def test_a_timeout_is_an_error_that_code_can_repair():
    with Interpreter(timeout=0.2) as interpreter:
        interpreter.execute("x = 1")
        with pytest.raises(CodeExecutionError, match="the limit is"):
            interpreter.execute("while True: pass")
        assert interpreter.execute("x") == 1


def test_submit_ends_the_run(interpreter):
    assert interpreter.execute("SUBMIT(1)\nprint('no')") == FinalOutput({"output": 1})
    interpreter.output_fields = [{"name": "a", "type": "str"}, {"name": "b"}]
    code = "try:\n  SUBMIT('x', b=[1])\nexcept Exception:\n  pass"
    assert interpreter.execute(code) == FinalOutput({"a": "x", "b": [1]})
    assert interpreter.execute("SUBMIT(a=5, b=None)") == FinalOutput({"a": 5, "b": None})
    with pytest.raises(CodeExecutionError, match=r"SUBMIT\(\)"):
        interpreter.execute("SUBMIT(c=1)")


def test_tools_are_read_at_each_execute(interpreter):
    interpreter.tools["double"] = lambda x: 2 * x
    assert interpreter.execute("double(4)") == 8
    interpreter.tools["double"] = lambda x: -x
    assert interpreter.execute("double(x=4)") == -4
    del interpreter.tools["double"]
    with pytest.raises(CodeExecutionError, match="Unknown tool: double"):
        interpreter.execute("double(4)")


def test_tools_take_arguments_of_all_kinds(interpreter):
    interpreter.tools["__f__"] = lambda *args, **kwargs: [list(args), kwargs]
    assert interpreter.execute("__f__(1, 2, a=3)") == [[1, 2], {"a": 3}]


def test_an_exception_of_a_tool_keeps_its_type(interpreter):
    def fail():
        raise ValueError("not today")

    interpreter.tools["fail"] = fail
    assert interpreter.execute("try: fail()\nexcept ValueError as e: s = str(e)\ns") == "not today"
    with pytest.raises(CodeExecutionError, match="not today"):
        interpreter.execute("fail()")

    interpreter.tools["read"] = lambda: json.loads("[1,")
    code = "import json\ntry: read()\nexcept json.JSONDecodeError as e: at = e.pos\nat"
    assert interpreter.execute(code) == 3


def test_exceptions_of_tools_keep_what_they_are(interpreter):
    for function in (failing.fail, failing.fail_later):
        interpreter.tools["fail"] = function
        assert interpreter.execute(f"{failing.CODE}seen") == failing.SEEN


def test_named_tuples_of_a_tool_are_dicts(interpreter):
    point = collections.namedtuple("Point", "x y")
    interpreter.tools["point"] = lambda: [point(1, point(2, 3)), {"p": point(4, 5)}, (6, 7)]
    assert interpreter.execute("point()") == [
        {"x": 1, "y": {"x": 2, "y": 3}},
        {"p": {"x": 4, "y": 5}},
        [6, 7],
    ]


def test_a_tool_can_be_invoked_before_the_first_run(interpreter):
    interpreter.tools["double"] = lambda x: 2 * x
    assert interpreter.invoke_tool("double", {"x": 2}) == 4
    with pytest.raises(CodeInterpreterError, match="Unknown tool: triple"):
        interpreter.invoke_tool("triple", {})
    assert interpreter.execute("double(3)") == 6


def test_a_tool_cannot_run_code_in_its_own_interpreter(interpreter):
    interpreter.tools["again"] = lambda: interpreter.execute("1")
    with pytest.raises(CodeExecutionError, match="cannot execute recursively"):
        interpreter.execute("again()")
    assert interpreter.execute("2") == 2


def test_a_result_that_cannot_cross_becomes_a_text(interpreter):
    interpreter.tools["one"] = lambda: 1 + 2j
    assert interpreter.execute("one()") in ("(1+2j)", "1+2j")


def test_coroutine_tools_run_also_under_a_running_loop(interpreter):
    variable = contextvars.ContextVar("variable")
    variable.set("seen")

    async def late(x: int) -> str:
        await asyncio.sleep(0)
        return f"{variable.get()} {x}"

    interpreter.tools["late"] = late
    assert interpreter.execute("late(1)") == "seen 1"

    async def main():
        return interpreter.execute("late(2)")

    assert asyncio.run(main()) == "seen 2"


def test_any_thread_may_use_it(interpreter):
    interpreter.execute("x = 1")
    found = []
    thread = threading.Thread(target=lambda: found.append(interpreter.execute("x")))
    thread.start()
    thread.join(60)
    assert found == [1]


def test_after_shutdown_it_cannot_be_used():
    interpreter = Interpreter()
    interpreter.start()
    interpreter.start()
    interpreter.shutdown()
    interpreter.shutdown()
    for use in (interpreter.start, lambda: interpreter.execute("1")):
        with pytest.raises(CodeInterpreterError, match="shut down"):
            use()


def test_a_session_that_has_ended_is_not_replaced():
    server = isolet.Server()
    with isolet.Sandbox(server=server) as sandbox, Interpreter(sandbox=sandbox) as interpreter:
        interpreter.execute("x = 1")
        server.close()
        for _ in range(2):
            with pytest.raises(CodeInterpreterError) as caught:
                interpreter.execute("x")
            assert not isinstance(caught.value, CodeExecutionError)


def test_a_policy_is_given_in_the_constructor(tmp_path):
    (tmp_path / "a.txt").write_text("text")
    factory = functools.partial(Interpreter, mounts={"/data": tmp_path})
    with factory() as interpreter:
        assert interpreter.execute("open('/data/a.txt').read()") == "text"
    with pytest.raises(TypeError, match="no_such_key"):
        Interpreter(no_such_key=1)


def test_callbacks_see_every_operation():
    seen = []

    class Watch(BaseCallback):
        def on_interpreter_startup_start(self, call_id, instance, inputs):
            seen.append("start")

        def on_interpreter_execute_start(self, call_id, instance, inputs):
            seen.append(inputs["code"])

        def on_interpreter_tool_call_start(self, call_id, instance, inputs):
            seen.append((inputs["tool_name"], inputs["kwargs"]))

        def on_interpreter_tool_call_end(self, call_id, outputs, exception=None):
            seen.append(outputs)

        def on_interpreter_shutdown_start(self, call_id, instance, inputs):
            seen.append("shutdown")

    async def double(x):
        return 2 * x

    with Interpreter({"double": double}, callbacks=[Watch()]) as interpreter:
        interpreter.execute("double(2)")
    assert seen == ["double(2)", "start", ("double", {"x": 2}), 4, "shutdown"]


def test_an_rlm_reads_calls_and_submits():
    lm = Scripted(
        [
            step("print(len(context))\nparts = context.split('|')"),
            step("1 / 0"),
            step("said = llm_query(f'what is {parts[1]}?')\nprint(said, lookup(key=parts[0]))"),
            "a fish",
            step("SUBMIT(said, '7')"),
        ]
    )

    def lookup(key: str) -> dict:
        """Looks a key up."""
        return {"key": key}

    with configured(lm):
        rlm = dspy.RLM("context, query -> answer, count: int", tools=[lookup], max_iters=5)
        found = rlm(context="a|trout|" + "c" * 200_000, query="?")
    assert (found.answer, found.count) == ("a fish", 7)
    outputs = [entry["output"] for entry in found.trajectory]
    assert outputs[0] == "200008\n"
    assert outputs[1] == "[Error] ZeroDivisionError: ['division by zero']"
    assert outputs[2] == "a fish {'key': 'a'}\n"
    assert "full CPython" in json.dumps([*lm.prompts, rlm.generate_action.signature.instructions])


def test_an_rlm_builds_predictors_in_its_code():
    lm = Scripted(
        [
            step("import dspy\np = dspy.Predict('question -> answer')\nr = p(question='q')"),
            "[[ ## answer ## ]]\nforty-two\n\n[[ ## completed ## ]]",
            step("SUBMIT(r.answer)"),
        ]
    )
    with configured(lm):
        assert dspy.RLM("query -> answer", max_iters=3)(query="?").answer == "forty-two"


def test_an_rlm_runs_asynchronously_with_an_async_tool():
    async def fetch(url: str) -> str:
        """Fetches a page."""
        await asyncio.sleep(0)
        return f"page {url}"

    lm = Scripted([step("SUBMIT(fetch(url='x'))")])

    async def main():
        with configured(lm):
            return await dspy.RLM("query -> answer", tools=[fetch], max_iters=2).acall(query="?")

    assert asyncio.run(main()).answer == "page x"


def test_interpreters_of_one_policy_prepare_its_packages_once(tmp_path):
    wheel = tmp_path / "isolet_tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as files:
        info = "isolet_tiny-1.0.dist-info"
        files.writestr("isolet_tiny.py", "value = 42")
        files.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: isolet-tiny\nVersion: 1.0")
        files.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any")
        files.writestr(f"{info}/RECORD", "")
    make = functools.partial(Interpreter, packages=["isolet-tiny"], wheels=[tmp_path], offline=True)
    with make() as interpreter:
        assert interpreter.execute("import isolet_tiny; isolet_tiny.value") == 42
    # What would be prepared anew would fail.
    wheel.unlink()
    with make() as interpreter:
        assert interpreter.execute("import isolet_tiny; isolet_tiny.value") == 42
