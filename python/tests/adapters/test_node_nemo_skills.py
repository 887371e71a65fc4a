"""`isolet serve --listen` answers the requests of NeMo-Skills' client, which no registry has."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from node_process import serving

SECONDS = 60


@pytest.fixture(scope="module")
def address():
    with serving() as address:
        yield address


class Client:
    """Sends what NeMo-Skills' `LocalSandbox` sends, and replays its cells as that does."""

    def __init__(self, address: str, session: str | None = None):
        self.address, self.session, self.cells = address, session, []

    def post(self, code: str, language: str = "ipython", timeout: float = 10.0, **more: object):
        body = {
            "generated_code": code,
            "std_input": "",
            "timeout": timeout,
            "language": language,
            "max_output_characters": 1000,
            "traceback_verbosity": "Plain",
            **more,
        }
        headers = {} if self.session is None else {"X-Session-ID": self.session}
        url = f"{self.address}/execute"
        answer = requests.post(url, json=body, headers=headers, timeout=timeout + SECONDS)
        assert answer.headers["content-type"] == "application/json"
        return answer

    def delete(self) -> int:
        url, headers = f"{self.address}/sessions/{self.session}", {"X-Session-ID": self.session}
        return requests.delete(url, headers=headers, timeout=SECONDS).status_code

    def execute(self, code: str, **more: object) -> dict[str, str]:
        output = self.post(code, **more).json()
        if output.pop("new_session_created", False) and output["process_status"] != "timeout":
            assert self.delete() in (200, 404)
            for cell in self.cells:
                assert self.post(cell).json()["process_status"] == "completed"
            output = self.post(code, **more).json()
            output.pop("new_session_created")
        if output["process_status"] == "completed":
            self.cells.append(code)
        return output


def completed(stdout: str) -> dict[str, str]:
    return {"process_status": "completed", "stdout": stdout, "stderr": ""}


def test_cells_of_a_session_share_their_variables(address):
    client = Client(address, "variables")
    assert client.execute("x = 1\nprint('a')") == completed("a\n")
    assert client.execute("x + 1") == completed("2\n")
    assert client.execute("'text'") == completed("'text'\n")
    assert client.execute("x = 5; x;") == completed("")
    output = client.execute("print('b')\n1 / 0")
    assert (output["process_status"], output["stdout"]) == ("error", "b\n")
    assert "ZeroDivisionError: division by zero" in output["stderr"]
    assert Client(address, "others").execute("'x' in globals()") == completed("False\n")


def test_a_cell_that_exits_is_told_as_ipython_tells_it(address):
    client = Client(address, "exits")
    for code, status, stderr in (
        ("print('a'); raise SystemExit(3)", "error", "SystemExit: 3\n"),
        ("import sys; print('a'); sys.exit('why')", "error", "SystemExit: why\n"),
        ("import sys; print('a'); sys.exit(0)", "error", "SystemExit: 0\n"),
        ("print('a'); exit()", "completed", ""),
    ):
        output = client.execute(code)
        assert output == {"process_status": status, "stdout": "a\n", "stderr": stderr}, code


def test_numbers_and_what_is_left_out_are_read_as_clients_send_them(address):
    client = Client(address, "lenient")
    for more in (
        {"timeout": "10", "max_output_characters": "100"},
        {"timeout": "", "max_output_characters": "null", "std_input": None, "unknown": 1},
        {"timeout": None, "language": None, "max_output_characters": None, "session_id": None},
    ):
        body = {"generated_code": "1 + 1", **more}
        headers = {"X-Session-ID": client.session}
        answer = requests.post(f"{address}/execute", json=body, headers=headers, timeout=SECONDS)
        assert answer.json()["stdout"] == "2\n", answer.text


def test_output_has_no_more_characters_than_asked_for(address):
    client = Client(address, "cut")
    output = client.execute("print('ä' * 100)", max_output_characters=10)
    assert output["stdout"] == "ä" * 10 + "<output cut>"


def test_a_cell_that_takes_too_long_is_told_and_its_session_goes_on(address):
    client = Client(address, "long")
    client.execute("x = 1")
    output = client.execute("print('begun', flush=True)\nwhile True: pass", timeout=0.5)
    assert output == {
        "process_status": "timeout",
        "stdout": "begun\n",
        "stderr": "Execution timed out after 0.5 seconds\n",
    }
    assert client.execute("x") == completed("1\n")


def test_a_session_that_was_lost_is_built_again_by_its_client(address):
    client = Client(address, "lost")
    client.execute("x = 1")
    client.execute("x += 1")
    lost = client.post("import os; os.kill(os.getpid(), 9)").json()
    assert (lost["process_status"], lost["new_session_created"]) == ("error", True)
    assert client.execute("x") == completed("2\n")
    assert client.delete() == 200
    assert client.delete() == 404
    assert client.post("1").json()["new_session_created"] is True


def test_cells_that_come_at_once_make_one_session_and_take_turns(address):
    client = Client(address, "at once")
    with ThreadPoolExecutor(8) as pool:
        code = "n = globals().get('n', 0) + 1; n"
        outputs = [answer.json() for answer in pool.map(client.post, [code] * 16)]
    assert sum(output["new_session_created"] for output in outputs) == 1
    assert sorted(int(output["stdout"]) for output in outputs) == list(range(1, 17))


def test_a_program_has_its_input_and_leaves_nothing(address):
    client = Client(address)
    output = client.post("print(input())\n2", language="python", std_input="in\n").json()
    assert output == completed("in\n")
    output = client.post("1 / 0", language="python3").json()
    assert output["process_status"] == "completed"
    assert "ZeroDivisionError" in output["stderr"]
    output = client.post("while True: pass", language="python", timeout=0.5).json()
    assert output["process_status"] == "timeout"


def test_what_cannot_be_run_is_an_output_that_says_why(address):
    client = Client(address)
    for code, more, status, reason in [
        ("theorem", {"language": "lean4"}, 422, "lean4"),
        ("ls", {"language": "shell"}, 422, "shell"),
        ("1", {}, 400, "X-Session-ID"),
        (1, {}, 400, "generated_code"),
    ]:
        answer = client.post(code, **more)
        output = answer.json()
        assert (answer.status_code, output["process_status"]) == (status, "error")
        assert reason in output["stderr"]


def test_a_node_that_is_full_has_the_request_wait_for_room():
    with serving("--max-sessions", "1") as address:
        assert requests.get(f"{address}/health", timeout=SECONDS).json() == {"status": "healthy"}
        with ThreadPoolExecutor(4) as pool:
            client = Client(address)
            answers = list(pool.map(lambda n: client.post(f"print({n})", "python"), range(8)))
        assert [answer.json()["stdout"] for answer in answers] == [f"{n}\n" for n in range(8)]
        Client(address, "one").execute("1")
        answer = Client(address, "two").post("1")
        assert (answer.status_code, answer.json()["process_status"]) == (503, "error")
        assert "limit 1" in answer.json()["stderr"]


def test_a_name_is_one_of_its_tenant(tmp_path):
    def digest(key: str) -> str:
        return f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"

    config = tmp_path / "node.toml"
    config.write_text(
        f'[tenants.a]\nkeys = ["{digest("key-a")}"]\n[tenants.b]\nkeys = ["{digest("key-b")}"]\n'
    )
    with serving("--config", str(config)) as address:
        a, b = (
            Client(address.replace("http://", f"http://user:{key}@"), "the same name")
            for key in ("key-a", "key-b")
        )
        a.execute("x = 'of a'")
        assert b.execute("'x' in globals()") == completed("False\n")
        assert b.delete() == 200
        assert a.execute("x") == completed("'of a'\n")
        assert a.cells == ["x = 'of a'", "x"]
        assert Client(address, "the same name").post("x").status_code == 401


def test_a_cell_is_read_as_by_ipython_and_a_program_is_not(address):
    client = Client(address, "ipython-cells")
    assert client.execute("    x = %pwd\n    x") == completed("'/home/user'\n")
    assert client.execute("x;  # hidden") == completed("")
    assert "unexpected indent" in client.execute("    x = 1", language="python")["stderr"]
