"""Runs, and what their results tell."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

import isolet


def test_code_runs_in_a_session_of_its_own() -> None:
    execution = isolet.run("40 + x", inputs={"x": 2})
    assert execution.status == "completed"
    assert execution.ok
    assert execution.value == 42
    assert execution.repr == "42"
    assert isolet.run("'x' in globals()").value is False


def test_output_and_usage_are_told(session: isolet.Session) -> None:
    execution = session.run("import sys\nprint('hi')\nprint('no', file=sys.stderr)")
    assert execution.stdout == "hi\n"
    assert execution.stderr == "no\n"
    assert execution.value is None
    assert session.run("x = 1").repr is None
    assert execution.usage.wall_time > 0
    assert execution.usage.stdout_bytes == 3
    assert execution.usage.peak_memory_bytes > 1 << 20
    assert not execution.truncated


def test_an_exception_is_a_result(session: isolet.Session) -> None:
    code = (
        "print('before')\n"
        "try:\n    {}['k']\nexcept KeyError as e:\n    raise ValueError('bad', 5) from e"
    )
    execution = session.run(code, name="cell.py")
    assert execution.status == "raised"
    assert not execution.ok
    assert execution.stdout == "before\n"
    error = execution.error
    assert error is not None
    assert (error.type, error.args) == ("ValueError", ["bad", 5])
    assert 'File "cell.py", line 5' in error.traceback
    assert error.cause is not None
    assert error.cause.type == "KeyError"
    assert session.run("1").ok


def test_raise_for_error_raises_what_went_wrong(session: isolet.Session) -> None:
    assert session.run("5").raise_for_error().value == 5
    with pytest.raises(isolet.GuestError, match="ZeroDivisionError: division by zero") as caught:
        session.eval("1/0")
    assert caught.value.execution.status == "raised"
    with pytest.raises(isolet.GuestError, match="exited with status 3"):
        session.eval("import sys; sys.exit(3)")


def test_a_missing_package_comes_with_the_keyword_that_loads_it(session: isolet.Session) -> None:
    execution = session.run("import sklearn")
    assert execution.failure == "ModuleNotFoundError: No module named 'sklearn'"
    hint = '`packages=["scikit-learn"]` loads it: that is the package of `sklearn`'
    assert execution.hint == hint
    with pytest.raises(isolet.GuestError) as caught:
        execution.raise_for_error()
    assert str(caught.value) == f"{execution.failure} (hint: {hint})"
    assert session.run("1").hint is None


def double(number: int) -> int:
    """Doubles it."""
    return 2 * number


def test_no_message_has_a_name_of_another_language(server: isolet.Server) -> None:
    messages = []
    policies: list[isolet.Policy] = [
        {"mounts": {"/data": "/"}},
        {"mounts": {"/data": "/nosuch"}},
        {"allow_net": ["https://a.example"]},
        {"packages": ["no such"]},
        {"limits": isolet.Limits(run_time=0.1, memory_bytes=1)},
        {"limits": isolet.Limits(memory_bytes=1 << 60)},
        {"packages": ["nosuch"], "offline": True},
    ]
    for policy in policies:
        try:
            with isolet.Sandbox(server=server, **policy).session() as session:
                session.run("1")
        except isolet.IsoletError as error:
            messages.append(str(error))
    limits = isolet.Limits(run_time=0.1, tool_calls=1, value_bytes=1000, source_bytes=200)
    sandbox = isolet.Sandbox(server=server, limits=limits, tools=[double])
    with sandbox.session() as session:
        for code in ("while True: pass", "double(1); double(2)", "'x' * 2000", "open('/x')"):
            execution = session.run(code)
            texts = (execution.failure, execution.value_error)
            messages += [text for text in texts if text]
            session.reset()
        wrong: list[Callable[[], object]] = [lambda: session.run("#" * 300), session.fork]
        for call in wrong:
            try:
                call()
            except isolet.IsoletError as error:
                messages.append(str(error))
    assert len(messages) >= 8
    for message in messages:
        assert "::" not in message, message
        assert "`--" not in message, message


def test_an_exit_is_a_result(session: isolet.Session) -> None:
    execution = session.run("import sys; sys.exit(3)")
    assert (execution.status, execution.exit_code, execution.ok) == ("exited", 3, False)
    assert execution.system_exit is not None
    assert (execution.system_exit.type, execution.system_exit.args) == ("SystemExit", [3])
    assert session.run("import sys; sys.exit()").ok
    told = session.run("class Exit(SystemExit): pass\nraise Exit('why')").system_exit
    assert told is not None
    assert (told.type, told.message, told.args) == ("Exit", "why", ["why"])
    assert session.run("1").system_exit is None


def test_a_timeout_is_a_result_and_the_session_goes_on(session: isolet.Session) -> None:
    session.run("kept = 1")
    execution = session.run("while True: pass", timeout=0.1)
    assert execution.status == "timeout"
    assert "0.1" in (execution.reason or "")
    assert execution.session_alive
    assert session.eval("kept") == 1
    with pytest.raises(isolet.GuestTimeoutError) as caught:
        execution.raise_for_error()
    assert isinstance(caught.value, TimeoutError)


STUBBORN = "while True:\n  try:\n    while True: pass\n  except: pass"


def test_a_guest_that_does_not_stop_ends_its_session(server: isolet.Server) -> None:
    limits = isolet.Limits(run_time=0.1, grace=0.1)
    policy: isolet.Policy = {"limits": limits, "checkpoint": False}
    with isolet.Sandbox(server=server, **policy).session() as session:
        execution = session.run(STUBBORN)
        assert execution.status == "timeout"
        assert not execution.session_alive
        assert not session.alive
        with pytest.raises(isolet.SessionClosedError):
            session.run("1")
        session.reset()
        assert session.alive
        assert session.eval("40 + 2") == 42
        with pytest.raises(isolet.ConfigError, match="`checkpoint`"):
            session.checkpoint()


@pytest.mark.parametrize("code", [STUBBORN, "import os; os._exit(3)", "import os; os.abort()"])
def test_a_session_goes_on_from_its_checkpoint(server: isolet.Server, code: str) -> None:
    limits = isolet.Limits(run_time=0.5, grace=0.1)
    with isolet.Sandbox(server=server, limits=limits).session(inputs={"given": 1}) as session:
        execution = session.run(f"given = 2\n{code}")
        assert execution.restored == isolet.Restored(lost_runs=1)
        assert execution.session_alive
        assert session.eval("given") == 1
        session.run("words = ['kept']")
        session.checkpoint()
        session.run("words.append('lost')")
        execution = session.run(code)
        assert execution.restored == isolet.Restored(lost_runs=2)
        assert session.eval("[*words, given]") == ["kept", 1]
        assert session.run("1").restored is None


def test_the_standard_input_and_arguments_are_passed(session: isolet.Session) -> None:
    code = "import sys\n[input(), sys.stdin.read(), sys.argv[1:]]"
    execution = session.run(code, stdin="one\ntwo\nthree", argv=["a", "b"])
    assert execution.value == ["one", "two\nthree", ["a", "b"]]
    assert session.run("import sys; sys.stdin.buffer.read()", stdin=b"\xff").value == b"\xff"
    assert session.eval("sys.argv[1:]") == ["a", "b"]
    for options in ({"argv": []}, {"argv": [], "program": True}, {"program": True}):
        session.run("1", argv=["a"])
        ran = session.run("import sys; print(sys.argv); sys.argv", **options)
        assert ran.stdout == "['']\n", options


def test_a_program_has_no_value(session: isolet.Session) -> None:
    execution = session.run("print(__name__)\n5", program=True)
    assert execution.stdout == "__main__\n"
    assert execution.value is None


def test_a_program_keeps_its_variables_if_it_is_to(session: isolet.Session) -> None:
    code = "file = open('/tmp/f', 'w'); file.write('text'); kept = 42"
    session.run(code, program=True)
    assert session.get("kept") is None
    session.run(code, program=True, keep_variables=True)
    assert (session.get("kept"), session.files.get("/tmp/f")) == (42, b"text")
    assert session.eval("file.closed") is False
    session.run("kept = 1", keep_variables=True)
    *_, execution = session.stream("kept += 1", program=True, keep_variables=True)
    assert (execution.status, session.get("kept")) == ("completed", 2)


def test_callbacks_get_output_and_displays_as_they_come(session: isolet.Session) -> None:
    seen: list[Any] = []
    execution = session.run(
        "import sys\nprint('a')\ndisplay({'text/html': '<b>'}, raw=True)\n"
        "print('b', file=sys.stderr)",
        on_stdout=lambda text: seen.append(("out", text)),
        on_stderr=lambda text: seen.append(("err", text)),
        on_display=lambda display: seen.append(display.data),
    )
    # `print` writes the end of the line by itself if the stream has no buffer.
    before, errors = seen[:2], "".join(text for kind, text in seen[2:] if kind == "err")
    assert (before, errors) == ([("out", "a\n"), {"text/html": "<b>"}], "b\n")
    assert execution.stdout == "a\n"


def test_a_callback_that_raises_ends_the_run(session: isolet.Session) -> None:
    def refuse(text: str) -> None:
        raise LookupError(text)

    with pytest.raises(LookupError, match="a"):
        session.run("print('a', flush=True)\nwhile True: pass", on_stdout=refuse)
    assert session.eval("1") == 1


def test_written_files_and_names_are_told(session: isolet.Session) -> None:
    execution = session.run("n = 5\nopen('made.txt', 'w').write('abc')")
    assert [(file.path.rsplit("/", 1)[-1], file.size) for file in execution.files] == [
        ("made.txt", 3)
    ]
    assert execution.locals["n"] == "5"


def test_what_limits_left_out_is_told(server: isolet.Server) -> None:
    limits = isolet.Limits(stdout_bytes=1000)
    execution = isolet.run("print('x' * 5000)", server=server, limits=limits)
    assert execution.ok
    assert execution.truncated.stdout_bytes >= 4000
    assert execution.usage.stdout_bytes == 5001


def test_the_memory_has_a_limit(server: isolet.Server) -> None:
    limits = isolet.Limits(memory_bytes=96 << 20)
    execution = isolet.run("bytearray(1 << 28)", server=server, limits=limits)
    assert execution.error is not None
    assert execution.error.type == "MemoryError"


def test_text_is_what_a_model_is_shown(session: isolet.Session) -> None:
    code = "import sys\nprint('out')\nprint('err', file=sys.stderr)\n"
    assert session.run(code + "6 * 7").text == "out\nerr\n42"
    assert session.run(code + "1/0").text.startswith("out\nerr\nTraceback")
    assert session.run("None").text == ""
    assert "0.1" in session.run("while True: pass", timeout=0.1).text


def test_an_execution_can_be_pickled_and_compared(session: isolet.Session) -> None:
    execution = session.run("print(1); [1]")
    copy = pickle.loads(pickle.dumps(execution))
    assert copy == execution
    assert copy != session.run("2")
    assert repr(copy) == "Execution(status='completed', value=[1], stdout='1\\n')"


def test_code_that_cannot_cross_is_refused_and_the_session_goes_on(
    session: isolet.Session,
) -> None:
    with pytest.raises(isolet.TransferError, match="surrogate"):
        session.run("'\ud800'")
    with pytest.raises(isolet.TransferError, match=r"inputs\['f'\]"):
        session.run("1", inputs={"f": print})
    assert session.eval("'ä'") == "ä"


def test_code_beyond_the_limit_is_refused(server: isolet.Server) -> None:
    sandbox = isolet.Sandbox(server=server, limits=isolet.Limits(source_bytes=1000))
    with sandbox.session() as session:
        with pytest.raises(isolet.LimitError, match="1000"):
            session.run("#" * 1001)
        assert session.eval("1") == 1


def test_a_submission_ends_the_run(server: isolet.Server) -> None:
    sandbox = isolet.Sandbox(server=server, submit={"answer": str})
    with sandbox.session() as session:
        execution = session.run("SUBMIT(answer='42')\nprint('never')")
        assert (execution.status, execution.value, execution.stdout) == (
            "submitted",
            {"answer": "42"},
            "",
        )
        assert execution.ok
        assert session.run("SUBMIT(answer=42)").error is not None
        session.set_submit({"n": int})
        assert session.run("SUBMIT(n=42)").value == {"n": 42}


def test_runs_of_many_codes_come_in_their_order(server: isolet.Server) -> None:
    sandbox = isolet.Sandbox(server=server)
    codes = [f"import time; time.sleep({0.05 * (i % 3)}); {i} + y" for i in range(9)]
    inputs = [{"y": 100 * i} for i in range(9)]
    found = [each.value for each in sandbox.map(codes, inputs, concurrency=3)]
    assert found == [101 * i for i in range(9)]
    assert list(sandbox.map([])) == []
    assert [each.status for each in sandbox.map(["1", "1/0", "2"])] == [
        "completed",
        "raised",
        "completed",
    ]


def test_runs_that_nobody_wants_are_ended(server: isolet.Server) -> None:
    sandbox = isolet.Sandbox(server=server)
    with sandbox.map(["1", "while True: pass"], concurrency=2) as runs:
        assert next(runs).value == 1
    assert list(runs) == []
    for execution in sandbox.map(["2", "while True: pass"], concurrency=2):
        assert execution.value == 2
        break
    assert isolet.run("3", server=server).value == 3


def test_the_syntax_of_code_is_that_of_a_file_of_python_c_or_of_a_cell():
    with isolet.Sandbox().session() as session:
        assert session.run("  1").error.type == "IndentationError"
        assert session.eval("  2", syntax="command") == 2
        assert session.eval("  x = %pwd\n  x", syntax="ipython") == "/home/user"
        assert session.variables()[0].name == "x"
        assert len(session.variables()) == 1
        with pytest.raises(isolet.ConfigError, match="`syntax` is 'ruby', and has to be 'python'"):
            session.run("1", syntax="ruby")
