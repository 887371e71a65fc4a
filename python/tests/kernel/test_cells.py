"""What front ends get of cells."""

from __future__ import annotations

import pytest
from conftest import SECONDS, Kernel


def test_output_and_displays_keep_their_order(kernel: Kernel) -> None:
    code = "import sys; print('a'); display('b'); print('c', file=sys.stderr); print('d'); 'e'"
    answer, published = kernel.run(code)
    assert answer["status"] == "ok"
    told = [
        (kind, content.get("text") or content["data"]["text/plain"]) for kind, content in published
    ]
    assert told == [
        ("stream", "a\n"),
        ("display_data", "'b'"),
        ("stream", "c\n"),
        ("stream", "d\n"),
        ("execute_result", "'e'"),
    ]
    count = answer["execution_count"]
    assert published[-1][1]["execution_count"] == count


def test_output_comes_while_the_cell_runs(fresh: Kernel) -> None:
    message = fresh.client.execute("print('first'); text = input()", allow_stdin=True)
    told = ""
    while "first" not in told:
        content = fresh.client.get_iopub_msg(timeout=SECONDS)["content"]
        told += content.get("text", "")
    assert fresh.client.get_stdin_msg(timeout=SECONDS)["msg_type"] == "input_request"
    fresh.client.input("")
    assert fresh.take(message)[0]["status"] == "ok"


def test_an_exception_is_published_and_aborts_the_cells_that_wait(fresh: Kernel) -> None:
    message = fresh.client.execute("input()", allow_stdin=True)
    assert fresh.client.get_stdin_msg(timeout=SECONDS)
    waiting = [fresh.client.execute(code) for code in ("1/0", "x = 1", "y = 1")]
    asked = fresh.client.kernel_info()
    fresh.client.input("")
    answer, _ = fresh.take(message)
    assert answer["status"] == "ok"
    failed, published = fresh.take(waiting[0])
    assert (failed["status"], failed["ename"]) == ("error", "ZeroDivisionError")
    assert published[0][0] == "error"
    assert "    1/0\n" in "\n".join(published[0][1]["traceback"])
    for aborted in waiting[1:]:
        assert fresh.answer(aborted)["status"] == "aborted"
    assert fresh.answer(asked)["status"] == "ok"
    assert fresh.value("'x' in globals()") == "False"


def test_cells_go_on_after_an_exception_if_that_is_asked_for(fresh: Kernel) -> None:
    failing = fresh.client.execute("1/0", stop_on_error=False)
    following = fresh.client.execute("x = 1")
    assert fresh.answer(failing)["status"] == "error"
    assert fresh.answer(following)["status"] == "ok"


def test_a_silent_cell_leaves_no_trace(fresh: Kernel) -> None:
    assert fresh.value("'kept'") == "'kept'"
    answer, published = fresh.run("'silent'", silent=True)
    assert (answer["status"], answer["execution_count"], published) == ("ok", 1, [])
    answer, published = fresh.run("'unstored'", store_history=False)
    assert [kind for kind, _ in published] == ["execute_result"]
    assert fresh.run("1/0", silent=True)[0]["status"] == "error"
    assert fresh.value("len(In), Out") == "(3, {1: 'kept'})"


def test_expressions_of_the_front_end_are_evaluated(kernel: Kernel) -> None:
    expressions = {"sum": "1 + 1", "wrong": "1 / 0"}
    answer, _ = kernel.run("", user_expressions=expressions)
    values = answer["user_expressions"]
    assert values["sum"]["data"] == {"text/plain": "2"}
    assert (values["wrong"]["status"], values["wrong"]["ename"]) == ("error", "ZeroDivisionError")


def test_a_display_with_an_id_is_changed(kernel: Kernel) -> None:
    code = "from IPython.display import *\nh = display('a', display_id='me'); h.update(HTML('b'))"
    _, published = kernel.run(code)
    assert [kind for kind, _ in published] == ["display_data", "update_display_data"]
    assert {content["transient"]["display_id"] for _, content in published} == {"me"}
    assert published[1][1]["data"]["text/html"] == "b"
    _, published = kernel.run("for _ in ProgressBar(2): pass")
    first, *others = published
    assert first[0] == "display_data"
    assert {kind for kind, _ in others} == {"update_display_data"}
    assert len({content["transient"]["display_id"] for _, content in published}) == 1


def test_what_comes_before_output_is_cleared(kernel: Kernel) -> None:
    code = "from IPython.display import clear_output\nprint(1); clear_output(wait=True); print(2)"
    _, published = kernel.run(code)
    assert [kind for kind, _ in published] == ["stream", "clear_output", "stream"]
    assert published[1][1] == {"wait": True}


@pytest.mark.parametrize(
    ("code", "is_password"),
    [("input('name? ')", False), ("import getpass; getpass.getpass('name? ')", True)],
)
def test_the_user_is_asked(kernel: Kernel, code: str, is_password: bool) -> None:
    message = kernel.client.execute(code, allow_stdin=True)
    asked = kernel.client.get_stdin_msg(timeout=SECONDS)
    assert asked["content"] == {"prompt": "name? ", "password": is_password}
    kernel.client.input("Ada")
    _, published = kernel.take(message)
    assert dict(published)["execute_result"]["data"]["text/plain"] == "'Ada'"


def test_a_front_end_without_a_user_is_not_asked(kernel: Kernel) -> None:
    answer, _ = kernel.run("input()")
    assert answer["ename"] == "StdinNotImplementedError"
    assert "`allow_stdin`" in answer["evalue"]
    assert kernel.value("try: input()\nexcept NotImplementedError: pass\n'caught'") == "'caught'"


@pytest.mark.parametrize("code", ["while True: pass", "import time; time.sleep(999)", "input()"])
def test_a_cell_is_interrupted_and_the_session_goes_on(kernel: Kernel, code: str) -> None:
    kernel.run("x = 5")
    message = kernel.client.execute(f"print('begun')\n{code}", allow_stdin=True)
    while kernel.client.get_iopub_msg(timeout=SECONDS)["content"].get("text") != "begun\n":
        pass
    kernel.manager.interrupt_kernel()
    answer, _ = kernel.take(message)
    assert answer["ename"] == "KeyboardInterrupt"
    assert kernel.value("x") == "5"


def test_a_lost_session_is_told_of_and_another_one_takes_its_place(fresh: Kernel) -> None:
    fresh.run("x = 5")
    answer, published = fresh.run("import os; os._exit(3)")
    assert answer["status"] == "error"
    assert "the session was lost" in published[0][1]["text"]
    assert fresh.value("'x' in globals(), __import__('sys').version_info[0]") == "(False, 3)"


def test_names_are_completed_where_the_cursor_is(kernel: Kernel) -> None:
    kernel.run("größe = 'x'")
    text = "f(größe.capi, 1)"
    answer = kernel.answer(kernel.client.complete(text, 12))
    assert (answer["matches"], answer["cursor_start"], answer["cursor_end"]) == (
        ["capitalize"],
        8,
        12,
    )


def test_the_function_that_is_called_is_looked_up(kernel: Kernel) -> None:
    for text, place in (("len(x, ", 7), ("len", 2), ("f(len(x), len", 13)):
        answer = kernel.answer(kernel.client.inspect(text, place))
        assert answer["found"], text
        assert "number of items" in answer["data"]["text/plain"]
    assert not kernel.answer(kernel.client.inspect("nothing_is_so", 3))["found"]


def test_the_kernel_says_what_it_is(kernel: Kernel) -> None:
    info = kernel.answer(kernel.client.kernel_info())
    language = info["language_info"]
    assert (info["implementation"], language["name"], info["debugger"]) == (
        "isolet",
        "python",
        False,
    )
    assert language["version"] == kernel.value("__import__('platform').python_version()").strip("'")
    assert language["pygments_lexer"] == "ipython3"
    assert info["banner"].endswith("cells can reach: no file of the host and no network")


def test_a_request_that_is_not_understood_is_answered(kernel: Kernel) -> None:
    message = kernel.client.session.msg("execute_request", {"cod": 1})
    kernel.client.shell_channel.send(message)
    answer = kernel.answer(message["header"]["msg_id"])
    assert answer["status"] == "error"
    assert "missing field `code`" in answer["evalue"]
    other = kernel.client.session.msg("nobody_knows_request", {})
    kernel.client.shell_channel.send(other)
    assert kernel.value("1") == "1"


def test_long_output_comes_whole_and_in_order(kernel: Kernel) -> None:
    answer, published = kernel.run("for i in range(200_000): print(i)")
    assert answer["status"] == "ok"
    text = "".join(content["text"] for _, content in published)
    assert text == "".join(f"{number}\n" for number in range(200_000))


def test_commands_of_notebooks_run(kernel: Kernel) -> None:
    _, published = kernel.run("!echo one\nx = !echo two\nprint(x)")
    assert "".join(content["text"] for _, content in published) == "one\n['two']\n"
    _, published = kernel.run("%%bash\necho $((6 * 7))")
    assert published[0][1]["text"] == "42\n"
