"""`isolet serve --listen` speaks SandboxFusion's protocol with its own client, and as verl does."""

from __future__ import annotations

import base64
import hashlib
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from node_process import serving

fusion = pytest.importorskip("sandbox_fusion")


@pytest.fixture(scope="module")
def address():
    with serving() as address:
        fusion.set_endpoint(address)
        yield address


def run(code: str, **more: object):
    return fusion.run_code(fusion.RunCodeRequest(code=code, language="python", **more))


def test_a_program_succeeds_with_its_input_and_files(address):
    contents = base64.b64encode(b"from a file").decode()
    result = run(
        "import sys\nprint(sys.stdin.read() + open('data/in.txt').read())\n"
        "open('out.txt', 'w').write('made')\nopen('/mnt/b', 'w').write('there')",
        stdin="from stdin, ",
        files={"data/in.txt": contents, "unused": None},
        fetch_files=["out.txt", "missing.txt", "/mnt/b"],
    )
    assert result.status == fusion.RunStatus.Success
    assert result.run_result.stdout == "from stdin, from a file\n"
    assert (result.run_result.status, result.run_result.return_code) == ("Finished", 0)
    assert result.files == {
        "out.txt": base64.b64encode(b"made").decode(),
        "/mnt/b": base64.b64encode(b"there").decode(),
    }


@pytest.mark.parametrize(
    ("code", "return_code", "stderr"),
    [
        ("1 / 0", 1, "ZeroDivisionError: division by zero"),
        ("import sys; sys.exit(3)", 3, ""),
        ("print(", 1, "SyntaxError"),
        ("x = bytearray(2 * 10**9)", 1, "MemoryError"),
        ("import os; os._exit(7)", 7, ""),
    ],
)
def test_a_program_that_fails_is_no_failure_of_the_sandbox(address, code, return_code, stderr):
    result = run(code)
    assert result.status == fusion.RunStatus.Failed
    assert (result.run_result.status, result.run_result.return_code) == ("Finished", return_code)
    assert stderr in result.run_result.stderr


def test_a_program_that_takes_too_long_has_no_status_of_its_own(address):
    result = run("print('begun', flush=True)\nwhile True: pass", run_timeout=0.5)
    assert result.status == fusion.RunStatus.Failed
    assert result.run_result.status == "TimeLimitExceeded"
    assert (result.run_result.return_code, result.run_result.stdout) == (None, "begun\n")


def test_programs_share_nothing(address):
    assert run("open('left', 'w').write('x'); import json; json.left = 1").status == "Success"
    code = "import json, os; print(os.path.exists('left'), hasattr(json, 'left'))"
    assert run(code).run_result.stdout == "False False\n"


def test_cells_of_a_notebook_share_their_variables(address):
    cells = [
        "a = 123",
        "a",
        "print(a)",
        "import sys; _ = sys.stderr.write('to stderr')",
        "raise RuntimeError('no')",
        "sys.exit('why')",
        "exit()",
        "a + 1",
    ]
    result = fusion.run_jupyter(fusion.RunJupyterRequest(cells=cells))
    assert result.status == fusion.RunStatus.Success
    assert [cell.stdout for cell in result.cells] == ["", "", "123\n", *[""] * 5]
    assert result.cells[1].display == [{"text/plain": "123"}]
    assert result.cells[3].stderr == "to stderr"
    assert result.cells[4].error[0]["ename"] == "RuntimeError"
    assert result.cells[5].error == [
        {"ename": "SystemExit", "evalue": "why", "traceback": ["SystemExit: why"]}
    ]
    assert (result.cells[6].error, result.cells[6].stderr) == ([], "")
    assert result.cells[7].display == [{"text/plain": "124"}]


def test_verdicts_are_those_that_verl_reads(address):
    """The conditions of verl's `process_result`, with its request."""

    def verdict(code: str, expected: str):
        body = {
            "compile_timeout": 10,
            "run_timeout": 1,
            "code": code,
            "stdin": "2 3",
            "memory_limit_MB": 1024,
            "language": "python",
            "files": {},
            "fetch_files": [],
        }
        answer = requests.post(f"{address}/run_code", json=body, timeout=60)
        assert answer.status_code == 200
        result = answer.json()
        run = result["run_result"]
        if result["status"] == "SandboxError":
            return -1
        if result["status"] == "Failed":
            return -3 if run["status"] == "TimeLimitExceeded" else -2
        return run["stdout"].rstrip("\n") == expected

    add = "print(sum(map(int, input().split())))"
    assert verdict(add, "5") is True
    assert verdict(add, "6") is False
    assert verdict("raise ValueError", "5") == -2
    assert verdict("while True: pass", "5") == -3
    assert verdict("import os; os.kill(os.getpid(), 9)", "5") == -2


def test_numbers_and_what_is_left_out_are_read_as_clients_send_them(address):
    body = {"code": "print(input())", "language": "python", "stdin": "a"}
    for more in (
        {"run_timeout": "10", "memory_limit_MB": "256"},
        {"run_timeout": "", "memory_limit_MB": "null", "compile_timeout": "x"},
        {"run_timeout": None, "memory_limit_MB": None, "files": None, "fetch_files": None},
    ):
        answer = requests.post(f"{address}/run_code", json={**body, **more}, timeout=60)
        assert answer.json()["run_result"]["stdout"] == "a\n", answer.text
    cells = {
        "cells": ["1"],
        "cell_timeout": "5",
        "total_timeout": "",
        "kernel": None,
        "files": None,
    }
    answer = requests.post(f"{address}/run_jupyter", json=cells, timeout=60)
    assert answer.json()["cells"][0]["display"] == [{"text/plain": "1"}]
    for wrong in ({"code": None}, {"run_timeout": "soon"}, {"run_timeout": []}):
        answer = requests.post(f"{address}/run_code", json={**body, **wrong}, timeout=60)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
        assert next(iter(wrong)) in answer.json()["detail"]


def test_another_language_is_refused(address):
    body = {"code": "int main() {}", "language": "cpp"}
    answer = requests.post(f"{address}/run_code", json=body, timeout=60)
    assert (answer.status_code, answer.json()["code"]) == (422, "unsupported")


def test_more_programs_than_there_is_room_for_wait_for_it():
    # More at once than there is room for, each of which would be refused.
    with serving("--max-sessions", "2") as address, ThreadPoolExecutor(16) as pool:

        def one(number: int) -> str:
            body = {"code": f"print({number})", "language": "python"}
            answer = requests.post(f"{address}/run_code", json=body, timeout=60)
            return answer.json()["run_result"]["stdout"]

        assert list(pool.map(one, range(48))) == [f"{number}\n" for number in range(48)]


def test_a_key_comes_in_the_url(tmp_path):
    digest = hashlib.sha256(b"the-key").hexdigest()
    config = tmp_path / "node.toml"
    config.write_text(f'[tenants.a]\nkeys = ["sha256:{digest}"]\n')
    with serving("--config", str(config)) as address:
        body = {"code": "print(1)", "language": "python"}
        assert requests.post(f"{address}/run_code", json=body, timeout=60).status_code == 401
        keyed = address.replace("http://", "http://user:the-key@")
        answer = requests.post(f"{keyed}/run_code", json=body, timeout=60)
        assert answer.json()["run_result"]["stdout"] == "1\n"


def test_cells_of_a_notebook_are_read_as_by_ipython(address):
    cells = ["%matplotlib inline\nprint(6 * 7)", "    x = %pwd\n    x", "x, Out[2]"]
    result = fusion.run_jupyter(fusion.RunJupyterRequest(cells=cells))
    assert result.cells[0].stdout == "42\n"
    shown = [cell.display[0]["text/plain"] for cell in result.cells[1:]]
    assert shown == ["'/home/user'", "('/home/user', '/home/user')"]
