"""`isolet.openenv.PyExecutor` keeps what OpenEnv's environments expect of theirs."""

from __future__ import annotations

import pytest

pytest.importorskip("openenv", reason="OpenEnv is not installed")

from openenv.core.env_server.types import CodeExecResult

import isolet.openenv


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
    assert executor.run("raise SystemExit(3)").exit_code == 3


def test_helpers_are_there(executor):
    code = "try:\n  1 / 0\nexcept Exception:\n  print('division' in format_exc())"
    assert executor.run(code).stdout == "True\n"
    assert executor.run("print(safe_json_dumps({'a': object}))").stdout == (
        '{"a": "<class \'object\'>"}\n'
    )


def test_a_session_that_was_ended_is_replaced():
    executor = isolet.openenv.PyExecutor(timeout=0.2)
    stubborn = "while True:\n  try:\n    while True: pass\n  except BaseException: pass"
    assert executor.run(stubborn).stderr.endswith("are lost.")
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
