"""The executors of `isolet.openenv` keep what OpenEnv's environments expect of theirs.

The REPL environment is no part of the package `openenv`: its executor is held to its description.
"""

from __future__ import annotations

import types

import pytest

pytest.importorskip("openenv", reason="OpenEnv is not installed")

from openenv.core.env_server.types import CodeExecResult

import isolet.openenv

STUBBORN = "while True:\n  try:\n    while True: pass\n  except BaseException: pass"
"""Code that cannot be interrupted: it ends its session."""


@pytest.fixture
def executor():
    executor = isolet.openenv.PyExecutor(additional_imports=["math"])
    yield executor
    executor.close()


def test_output_value_and_state(executor):
    found = executor.run("import math\nx = [1]\nprint('a')")
    assert found == CodeExecResult(stdout="a\n", stderr="", exit_code=0)
    assert executor.run("x").stdout == "[1]"
    assert executor.run("print('a')\n'b'").stdout == 'a\n\n"b"'
    assert executor.run("object").stdout == "<class 'object'>"


def test_an_exception_is_a_standard_error(executor):
    found = executor.run("print('a')\n1 / 0")
    assert (found.stdout, found.exit_code) == ("a\n", 1)
    assert "ZeroDivisionError: division by zero" in found.stderr
    found = executor.run("raise SystemExit(3)")
    assert (found.exit_code, found.stderr.splitlines()[-1]) == (3, "SystemExit: 3")
    found = executor.run("exit('why')")
    assert (found.exit_code, found.stderr.splitlines()[-1]) == (1, "SystemExit: why")
    assert executor.run("exit()") == CodeExecResult(stdout="", stderr="", exit_code=0)


def test_helpers_are_there(executor):
    code = "try:\n  1 / 0\nexcept Exception:\n  print('division' in format_exc())"
    assert executor.run(code).stdout == "True\n"
    assert executor.run("print(safe_json_dumps({'a': object}))").stdout == (
        '{"a": "<class \'object\'>"}\n'
    )


def test_a_session_that_was_ended_goes_on():
    executor = isolet.openenv.PyExecutor(timeout=0.2)
    assert executor.run(STUBBORN).stderr.endswith("what the run changed is lost.")
    assert executor.run("1").stdout == "1"
    executor.close()


def test_install_replaces_the_executor_and_can_be_undone():
    pytest.importorskip("smolagents", reason="smolagents is not installed")
    import openenv.core.tools

    original = openenv.core.tools.PyExecutor
    uninstall = isolet.openenv.install(timeout=5)
    try:
        from openenv.core.tools import PyExecutor

        executor = PyExecutor(additional_imports=[])
        assert isinstance(executor, isolet.openenv.PyExecutor)
        assert executor.run("1 + 1").stdout == "2"
        executor.close()
    finally:
        uninstall()
    assert openenv.core.tools.PyExecutor is original


@pytest.fixture
def repl():
    repl = isolet.openenv.PythonExecutor()
    yield repl
    repl.close()


class REPLEnvironment:
    """What the environment does with its executor, as its description has it."""

    def __init__(self, executor):
        self.executor = executor
        executor.set_variable("answer", {"content": "", "ready": False})
        executor.set_context("a long document")
        for function in self.functions():
            executor.inject_function(function.__name__, function)

    def functions(self):
        def FINAL(value):
            raise AssertionError("it runs in the guest")

        def llm_query(prompt: str, model: str | None = None):
            return f"{model}: {prompt}"

        def SHOW_VARS():
            return sorted(self.executor.list_variables())

        return FINAL, llm_query, SHOW_VARS


def test_an_execution_of_the_repl_has_the_fields_of_openenv(repl):
    found = repl.execute("print('a')\nx = [1]\n_hidden = 2\nx")
    assert found.pop("execution_time") > 0
    assert found == {
        "stdout": "a\n\n[1]",
        "stderr": "",
        "locals_snapshot": {"x": "[1]"},
        "success": True,
        "exception": None,
    }
    found = repl.execute("import sys; print('b', file=sys.stderr); y = 'z' * 600; x = 2; int")
    assert (found["stdout"], found["stderr"]) == ("<class 'int'>", "b\n")
    assert found["locals_snapshot"] == {"y": "'" + "z" * 499 + "..."}


def test_an_exception_of_the_repl_is_told_with_type_message_and_traceback(repl):
    found = repl.execute("z = 1\nraise ValueError('test')")
    assert not found["success"]
    assert found["exception"].startswith("ValueError: test\nTraceback")
    assert found["stderr"] == found["exception"]
    assert found["locals_snapshot"] == {"z": "1"}
    for code, text in (("raise SystemExit(0)", "0"), ("exit('why')", "why")):
        found = repl.execute(code)
        assert found["exception"].startswith(f"SystemExit: {text}\nTraceback"), found
        assert found["stderr"] == found["exception"]


def test_variables_of_the_repl_are_set_read_and_listed(repl):
    repl.set_context("abc")
    repl.set_variable("n", {"a": [1]})
    repl.execute("import math\nd = len(context)\ndef f(): pass\ns = 1j\n_p = 1")
    assert repl.get_variable("d") == 3
    assert repl.get_variable("n") == {"a": [1]}
    assert repl.get_variable("s") == "1j"
    assert repl.get_variable("none") is None
    assert repl.get_variable("format_exc") is None
    assert "function f" in repl.get_variable("f")
    names = repl.list_variables()
    assert {"context", "n", "d", "s", "format_exc", "safe_json_dumps"} <= set(names)
    assert not {"_p", "FINAL", "FINAL_VAR"} & set(names)
    with pytest.raises(isolet.TransferError, match="`o`"):
        repl.set_variable("o", object())


def test_functions_of_the_repl_may_read_its_variables_while_code_runs(repl):
    REPLEnvironment(repl)
    found = repl.execute("q = 1\nnames = SHOW_VARS()\nllm_query('why', model='m')")
    assert found["stdout"] == '"m: why"'
    assert {"q", "context", "answer", "llm_query", "SHOW_VARS", "FINAL"} <= set(
        repl.get_variable("names")
    )


def test_answers_may_be_what_cannot_cross(repl):
    REPLEnvironment(repl)
    code = "class P:\n  def __repr__(self): return 'P'\np = P()\nprint(FINAL((1, p)))"
    assert repl.execute(code)["stdout"] == "FINAL((1, P))\n"
    assert repl.execute("print(FINAL_VAR('p'))")["stdout"] == "FINAL(P)\n"
    assert repl.execute("print(FINAL_VAR('none'))")["stdout"] == "FINAL_VAR(none)\n"
    repl.inject_function("FINAL", lambda value: f"<{value}>")
    assert repl.execute("print(FINAL(1))")["stdout"] == "<1>\n"


def test_long_output_of_the_repl_is_cut():
    repl = isolet.openenv.PythonExecutor(max_output_length=10)
    found = repl.execute("import sys; print('a' * 20); print('b' * 11, file=sys.stderr)")
    assert found["stdout"] == "a" * 10 + "\n... (truncated, total 21 chars)"
    assert found["stderr"] == "b" * 10 + "\n... (truncated, total 12 chars)"
    repl.close()


def test_a_repl_that_was_ended_goes_on_with_what_the_host_gave_it():
    repl = isolet.openenv.PythonExecutor(timeout=0.2)
    REPLEnvironment(repl)
    repl.execute("x = 1")
    found = repl.execute(STUBBORN)
    assert found["exception"].endswith("what they changed is lost.")
    assert not found["success"]
    assert repl.get_variable("answer") == {"content": "", "ready": False}
    assert repl.get_variable("x") is None
    assert repl.execute("llm_query(context)")["stdout"] == '"None: a long document"'
    repl.reset()
    assert repl.get_variable("context") is None
    assert repl.execute("llm_query('')")["exception"].startswith("NameError")
    repl.close()


def test_code_is_read_as_a_cell_of_ipython():
    repl = isolet.openenv.PythonExecutor()
    assert repl.execute("    x = %pwd\n    x")["stdout"] == '"/home/user"'
    assert repl.list_variables()
    assert "Out" not in repl.list_variables()
    repl.close()


def test_install_replaces_the_executor_of_a_repl_environment():
    environment = types.ModuleType("repl_environment")
    environment.PythonExecutor = original = object()
    uninstall = isolet.openenv.install(environment, timeout=5)
    try:
        executor = environment.PythonExecutor(max_output_length=3)
        assert isinstance(executor, isolet.openenv.PythonExecutor)
        assert executor.execute("'abc'")["stdout"].startswith('"ab\n... (truncated')
        executor.close()
    finally:
        uninstall()
    assert environment.PythonExecutor is original
    with pytest.raises(isolet.ConfigError, match="`math` has neither"):
        isolet.openenv.install(__import__("math"))
