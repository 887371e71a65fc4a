"""`isolet.compat.e2b` keeps what programs expect of E2B's code interpreter."""

from __future__ import annotations

import base64
import inspect
import io
import json
import os
import threading

import pytest

from isolet.compat.e2b import (
    CommandExitException,
    Execution,
    FileNotFoundException,
    InvalidArgumentException,
    NotFoundException,
    Result,
    Sandbox,
    SandboxException,
    TimeoutException,
)


@pytest.fixture
def sandbox():
    with Sandbox.create() as sandbox:
        yield sandbox


def test_state_text_logs_and_count(sandbox):
    sandbox.run_code("x = 1")
    execution = sandbox.run_code("import sys\nprint('a')\nprint('b', file=sys.stderr)\nx + 1")
    assert execution.text == "2"
    assert "".join(execution.logs.stdout) == "a\n"
    assert "".join(execution.logs.stderr) == "b\n"
    assert execution.error is None
    assert execution.execution_count == 2
    assert sandbox.run_code("y = 1").results == []


def test_an_error_has_name_value_and_traceback(sandbox):
    seen = []
    execution = sandbox.run_code("print('a')\n1 / 0", on_error=seen.append)
    assert (execution.error.name, execution.error.value) == (
        "ZeroDivisionError",
        "division by zero",
    )
    assert "1 / 0" in execution.error.traceback
    assert seen == [execution.error]
    assert execution.logs.stdout == ["a\n"]
    for code, shown in (
        ("import sys; sys.exit(3)", ("SystemExit", "3", "SystemExit: 3")),
        ("raise SystemExit('why')", ("SystemExit", "why", "SystemExit: why")),
        ("raise SystemExit", ("SystemExit", "", "SystemExit")),
        (
            "def f():\n  class Quit(SystemExit): pass\n  raise Quit(5)\nf()",
            ("Quit", "5", "Quit: 5"),
        ),
        ("exit()", None),
    ):
        execution = sandbox.run_code(code)
        error = execution.error
        assert (error and (error.name, error.value, error.traceback)) == shown
        assert execution.logs.stderr == []


def test_displays_are_results(sandbox):
    seen = []
    execution = sandbox.run_code(
        "from IPython.display import HTML, display\n"
        "class P:\n  def _repr_png_(self): return b'png'\n  def __repr__(self): return 'P'\n"
        "display(HTML('<b>'))\nP()",
        on_result=seen.append,
    )
    first, main = execution.results
    assert seen == [first, main]
    assert (first.html, first.is_main_result) == ("<b>", False)
    assert base64.b64decode(main.png) == b"png"
    assert main.is_main_result
    assert execution.text == "P"
    assert main["png"] == main.png
    assert set(main.formats()) == {"text", "png"}
    assert json.loads(execution.to_json())["results"][0]["html"] == "<b>"


def test_output_is_seen_as_it_is_written(sandbox):
    lines, errors = [], []
    sandbox.run_code(
        "import sys\nprint('a')\nprint('b', file=sys.stderr)",
        on_stdout=lines.append,
        on_stderr=errors.append,
    )
    assert ("".join(each.line for each in lines), lines[0].error) == ("a\n", False)
    assert ("".join(str(each) for each in errors), errors[0].error) == ("b\n", True)
    assert lines[0].timestamp > 10**18


def test_contexts_have_variables_of_their_own_and_the_same_files(sandbox):
    sandbox.run_code("x = 1; open('f', 'w').write('text')")
    context = sandbox.create_code_context(cwd="/tmp")
    code = "import os; 'x' in globals(), os.getcwd(), open('/home/user/f').read()"
    assert sandbox.run_code(code, context=context).text == "(False, '/tmp', 'text')"
    sandbox.run_code("x = 2", context=context)
    assert sandbox.run_code("x").text == "1"
    sandbox.restart_code_context(context)
    assert sandbox.run_code("x", context=context).error.name == "NameError"
    assert context in sandbox.list_code_contexts()
    sandbox.remove_code_context(context.id)
    with pytest.raises(NotFoundException):
        sandbox.run_code("1", context=context)
    with pytest.raises(InvalidArgumentException, match="cwd"):
        sandbox.create_code_context(cwd="/none")


def test_files_are_written_read_listed_and_removed(sandbox):
    assert sandbox.files.write("data/a.txt", "ä").path == "/home/user/data/a.txt"
    sandbox.files.write_files([{"path": "/home/user/b", "data": io.BytesIO(b"\xff")}])
    assert sandbox.run_code("open('data/a.txt', encoding='utf-8').read()").text == "ä"
    assert sandbox.files.read("data/a.txt") == "ä"
    assert sandbox.files.read("b", format="bytes") == bytearray(b"\xff")
    assert b"".join(sandbox.files.read("b", format="stream")) == b"\xff"
    found = {entry.path: (entry.type, entry.size) for entry in sandbox.files.list("/", depth=1)}
    assert found["/home"][0] == "dir"
    names = sorted(entry.name for entry in sandbox.files.list("/home/user", depth=2))
    assert names == ["a.txt", "b", "data"]
    assert sandbox.files.get_info("b").size == 1
    assert sandbox.files.rename("b", "c/d").name == "d"
    assert sandbox.files.make_dir("e")
    assert not sandbox.files.make_dir("e")
    sandbox.files.remove("data")
    assert not sandbox.files.exists("data/a.txt")
    with pytest.raises(FileNotFoundException):
        sandbox.files.read("data/a.txt")
    with pytest.raises(FileNotFoundException):
        sandbox.files.remove("data")
    with pytest.raises(FileNotFoundException):
        sandbox.files.list("data")


def test_files_of_the_host_are_not_seen(sandbox, tmp_path):
    (tmp_path / "secret").write_text("secret")
    with pytest.raises(FileNotFoundException):
        sandbox.files.read(f"{tmp_path}/secret")
    sandbox.run_code(f"import os; os.symlink({str(tmp_path)!r}, '/home/user/link')")
    with pytest.raises(SandboxException):
        sandbox.files.read("link/secret")


def test_a_run_that_takes_too_long_raises(sandbox):
    sandbox.run_code("x = 1")
    with pytest.raises(TimeoutException, match="the limit is"):
        sandbox.run_code("while True: pass", timeout=0.2)
    assert sandbox.run_code("x").text == "1"


def test_environment_variables_of_the_sandbox_and_of_a_run():
    code = "import os; os.environ.get('A'), os.environ.get('B')"
    with Sandbox.create(envs={"A": "a"}) as sandbox:
        assert sandbox.run_code(code, envs={"A": "run", "B": "b"}).text == "('run', 'b')"
        assert sandbox.run_code(code).text == "('a', None)"


def test_another_language_is_refused(sandbox):
    with pytest.raises(InvalidArgumentException, match="'r'"):
        sandbox.run_code("1", language="r")
    assert sandbox.run_code("1", language="python").text == "1"
    for name in ("pty", "git"):
        with pytest.raises(SandboxException, match=name):
            getattr(sandbox, name)


def test_commands_see_the_files_of_the_code_and_tell_their_status(sandbox):
    sandbox.run_code("open('names.txt', 'w').write('b\\na\\nb\\n')")
    done = sandbox.commands.run("sort names.txt | uniq -c; echo $A >&2", envs={"A": "1"})
    assert (done.stdout.split(), done.stderr, done.exit_code) == (["1", "a", "2", "b"], "1\n", 0)
    heard = []
    program = "python3 -c 'print(input()); print(2)' <<< 1"
    done = sandbox.commands.run(program, on_stdout=heard.append)
    assert "".join(heard) == done.stdout == "1\n2\n"
    sandbox.commands.run("mkdir -p 'a b'; cd 'a b'; x=1; pwd > where")
    assert sandbox.files.read("a b/where") == "/home/user/a b\n"
    # Each has a shell of its own, in the directory that it names.
    done = sandbox.commands.run("pwd; echo -$x-", cwd="a b")
    assert done.stdout == "/home/user/a b\n--\n"
    with pytest.raises(CommandExitException) as caught:
        sandbox.commands.run("echo out; echo err >&2; exit 3")
    error = caught.value
    assert (error.exit_code, error.stdout, error.stderr) == (3, "out\n", "err\n")
    with pytest.raises(CommandExitException, match="not found") as caught:
        sandbox.commands.run("gcc main.c")
    assert caught.value.exit_code == 127
    with pytest.raises(CommandExitException, match="nowhere"):
        sandbox.commands.run("true", cwd="nowhere")
    with pytest.raises(TimeoutException, match="timeout"):
        sandbox.commands.run("while :; do :; done", timeout=0.3)
    with pytest.raises(InvalidArgumentException, match="background"):
        sandbox.commands.run("sleep 1", background=True)
    assert sandbox.run_code("1 + 1").text == "2"


def test_kill_ends_it_and_removes_its_files():
    sandbox = Sandbox.create()
    sandbox.files.write("a", "b")
    home = sandbox._home.name
    assert sandbox.is_running()
    assert sandbox.kill()
    assert not sandbox.kill()
    assert not sandbox.is_running()
    assert not os.path.exists(home)
    with pytest.raises(NotFoundException):
        sandbox.run_code("1")


@pytest.mark.parametrize(
    "name",
    [
        "run_code",
        "create_code_context",
        "remove_code_context",
        "list_code_contexts",
        "restart_code_context",
    ],
)
def test_methods_have_the_parameters_of_e2b(name):
    e2b = pytest.importorskip("e2b_code_interpreter", reason="E2B's package is not installed")
    theirs = inspect.signature(getattr(e2b.Sandbox, name)).parameters
    assert list(inspect.signature(getattr(Sandbox, name)).parameters) == list(theirs)


def test_results_have_the_fields_of_e2b():
    e2b = pytest.importorskip("e2b_code_interpreter", reason="E2B's package is not installed")
    assert set(e2b.Result.__dataclass_fields__) <= set(Result.__dataclass_fields__)
    assert set(e2b.Execution.__dataclass_fields__) <= set(Execution.__dataclass_fields__)


def test_a_text_has_no_quotes_and_a_chart_has_the_form_of_e2b(sandbox):
    for code, text in (("'it\\'s'", "it's"), ("''", ""), ("['a']", "['a']")):
        assert sandbox.run_code(code).text == text
    chart = '{"type": "bar", "x_label": "t [h]", "y_label": null, "elements": []}'
    code = f"display({{'application/vnd.isolet.chart.v1+json': {chart!r}}}, raw=True)"
    (result,) = sandbox.run_code(code).results
    assert (result.chart["x_unit"], result.chart["y_unit"]) == ("h", None)
    chart = '{"type": "line", "elements": [{"label": null, "points": []}, {"label": "a"}]}'
    code = f"display({{'application/vnd.isolet.chart.v1+json': {chart!r}}}, raw=True)"
    (result,) = sandbox.run_code(code).results
    assert [each["label"] for each in result.chart["elements"]] == ["Line 0", "a"]
    assert sandbox.run_code("display('a')").results[0].text == "a"


def test_a_table_has_its_data(sandbox):
    code = """
        import sys, types
        class DataFrame:
            shape = 1, 1
            def items(self): return [("a", types.SimpleNamespace(tolist=lambda: [1.5]))]
        pandas = sys.modules["pandas"] = types.ModuleType("pandas")
        pandas.DataFrame, pandas.NA, pandas.NaT = DataFrame, object(), object()
        DataFrame()
        """
    (result,) = sandbox.run_code(code).results
    assert (result.data, result.extra, result.is_main_result) == ({"a": [1.5]}, None, True)
    assert "data" in result.formats()


def test_a_sandbox_that_is_killed_meanwhile_is_a_timeout_as_with_e2b():
    sandbox, code = Sandbox(), "print('a', flush=True)\nwhile True: pass"
    with pytest.raises(TimeoutException, match="was killed"):
        sandbox.run_code(code, on_stdout=lambda _: kill(sandbox))


def kill(sandbox):
    threading.Thread(target=sandbox.kill).start()


def test_code_is_read_as_a_cell_of_ipython(sandbox):
    assert sandbox.run_code("    x = %pwd\n    x").text == "/home/user"
    assert sandbox.run_code("_, In[1]").text == repr(("/home/user", "    x = %pwd\n    x"))
    assert sandbox.run_code("x;").results == []
    assert "".join(sandbox.run_code("!echo a").logs.stdout) == "a\n"
    error = sandbox.run_code("%foo").error
    assert (error.name, error.value) == ("UsageError", "Line magic function `%foo` not found.")
