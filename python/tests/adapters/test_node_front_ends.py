"""A node answers the requests of Dify and of RAGFlow, whose clients no registry has."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest
import requests
from node_process import serving

SECONDS = 60


@pytest.fixture(scope="module")
def address():
    with serving() as address:
        yield address


class CodeExecutionError(Exception):
    pass


def dify(address: str, code: str, language: str = "python3", key: str = "any") -> str:
    """Sends what Dify's `CodeExecutor` sends, and reads the answer as that does."""
    answer = requests.post(
        f"{address}/v1/sandbox/run",
        json={"language": language, "code": code, "preload": "", "enable_network": True},
        headers={"X-Api-Key": key},
        timeout=SECONDS,
    )
    if answer.status_code == 503:
        raise CodeExecutionError("Code execution service is unavailable")
    if answer.status_code != 200:
        raise CodeExecutionError(f"got status code {answer.status_code}")
    body = answer.json()
    if body["code"] != 0:
        raise CodeExecutionError(body["message"])
    if body["data"]["error"]:
        raise CodeExecutionError(body["data"]["error"])
    return body["data"]["stdout"]


# The runner into which Dify puts the code and the inputs of a node.
DIFY_RUNNER = """
def main(arg1: str) -> dict:
    return {{"result": arg1 + " world", "é": [1.5, None]}}

import json
from base64 import b64decode

inputs_obj = json.loads(b64decode("{inputs}").decode("utf-8"))
output_obj = main(**inputs_obj)
output_json = json.dumps(output_obj, indent=4)
print(f"<<RESULT>>{{output_json}}<<RESULT>>")
"""


def test_a_code_node_of_dify_gets_its_result_or_what_went_wrong(address: str) -> None:
    inputs = base64.b64encode(b'{"arg1": "hello"}').decode()
    stdout = dify(address, DIFY_RUNNER.format(inputs=inputs))
    assert '"result": "hello world"' in stdout.split("<<RESULT>>")[1]
    assert dify(address, "import sys; print('warned', file=sys.stderr); print(1)") == "1\n"
    with pytest.raises(CodeExecutionError, match=r"(?s)said.*ZeroDivisionError: division by zero"):
        dify(address, "import sys; print('said', file=sys.stderr); 1 / 0")
    with pytest.raises(CodeExecutionError, match="exited with status 3"):
        dify(address, "import sys; sys.exit(3)")
    with pytest.raises(CodeExecutionError, match='the language is "nodejs"'):
        dify(address, "1", language="nodejs")
    with pytest.raises(CodeExecutionError, match=r"denied\.example"):
        dify(address, "import urllib.request as u; u.urlopen('http://denied.example')")
    found = requests.get(
        f"{address}/v1/sandbox/dependencies", params={"language": "python3"}, timeout=SECONDS
    )
    assert found.json()["data"]["dependencies"] == []


def test_runs_of_dify_share_nothing_and_need_the_key_of_a_tenant(tmp_path: Path) -> None:
    hashed = hashlib.sha256(b"secret").hexdigest()
    config = tmp_path / "node.toml"
    config.write_text(f'[tenants.a]\nkeys = ["sha256:{hashed}"]\n', encoding="utf-8")
    with serving("--config", str(config)) as address:
        dify(address, "open('/home/user/left', 'w').write('x')", key="secret")
        left = "import os; print(os.path.exists('/home/user/left'))"
        assert dify(address, left, key="secret") == "False\n"
        with pytest.raises(CodeExecutionError, match="status code 401"):
            dify(address, "print(1)", key="wrong")


def ragflow(address: str, code: str, language: str = "python", **arguments: Any) -> dict[str, Any]:
    """Sends what RAGFlow's `SelfManagedProvider` sends."""
    payload = {
        "code_b64": base64.b64encode(code.encode()).decode(),
        "language": language,
        "arguments": arguments,
    }
    answer = requests.post(f"{address}/run", json=payload, timeout=SECONDS)
    assert answer.status_code == 200, answer.text
    return answer.json()


def shown(answer: dict[str, Any]) -> Any:
    """Returns what a component of RAGFlow outputs of an answer, or raises its error."""
    result = answer.get("result") or {}
    if answer["stderr"] and not result.get("present") and not answer["stdout"].strip():
        raise CodeExecutionError(answer["stderr"])
    return result["value"] if result.get("present") else answer["stdout"]


MAIN = """
def main(a: str, n: int = 1) -> dict:
    print("prints")
    return {"result": a * n, "more": (1, None)}
"""


def test_a_component_of_ragflow_gets_what_main_returns_or_what_went_wrong(address: str) -> None:
    assert requests.get(f"{address}/healthz", timeout=SECONDS).status_code == 200
    answer = ragflow(address, MAIN, a="é", n=2)
    assert shown(answer) == {"result": "éé", "more": [1, None]}
    assert (answer["status"], answer["exit_code"], answer["stdout"]) == ("success", 0, "prints\n")
    assert answer["time_used_ms"] > 0
    with pytest.raises(CodeExecutionError, match=r"(?s)prints.*TypeError: main\(\) missing"):
        shown(ragflow(address, "print('prints')\n" + MAIN))
    failed = ragflow(address, "def main(): return {1, 2}")
    assert (failed["status"], failed["exit_code"]) == ("program_error", 1)
    assert "not JSON serializable" in failed["stderr"]
    assert shown(ragflow(address, "def main(): pass")) is None
    other = ragflow(address, "1", language="nodejs")
    assert (other["status"], other["exit_code"]) == ("program_runner_error", -3)
    assert 'the language is "nodejs"' in other["stderr"]
    wrong = requests.post(f"{address}/run", json={"code_b64": "?"}, timeout=SECONDS).json()
    assert "no base64" in wrong["stderr"]


def test_files_that_a_component_of_ragflow_has_made_come_with_their_types(address: str) -> None:
    code = """
def main():
    open("artifacts/a.csv", "w").write("x,y")
    open("b.PNG", "wb").write(b"png")
    open("artifacts/c.exe", "w").write("no")
    open("artifacts/.d.csv", "w").write("no")
    open("artifacts/empty.csv", "w").close()
    return "made"
"""
    answer = ragflow(address, code)
    found = {each["name"]: each for each in answer["artifacts"]}
    assert sorted(found) == ["a.csv", "b.PNG"]
    assert base64.b64decode(found["a.csv"]["content_b64"]) == b"x,y"
    assert (found["b.PNG"]["mime_type"], found["b.PNG"]["size"]) == ("image/png", 3)


def test_a_component_of_ragflow_that_takes_too_long_is_told_so(tmp_path: Path) -> None:
    config = tmp_path / "node.toml"
    config.write_text("[policy]\nlimits = { run_time = 0.5 }\n", encoding="utf-8")
    with serving("--config", str(config)) as address:
        answer = ragflow(address, "def main():\n    print('begins')\n    while True: pass")
    assert (answer["status"], answer["resource_limit_type"]) == ("resource_limit_exceeded", "time")
    assert answer["exit_code"] == -124
    assert answer["stderr"].startswith("begins\n")
