"""The cases that clients of all languages pass: `tests/clients/cases.json` of the repository."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import isolet

CASES = json.loads(
    (Path(__file__).parents[2] / "tests/clients/cases.json").read_text(encoding="utf-8")
)


def echo(value: Any) -> Any:
    return value


def add(a: int, b: int) -> int:
    return a + b


def fail(text: str) -> None:
    raise ValueError(text)


TOOLS = {"echo": echo, "add": add, "fail": fail}


def plain(found: Any) -> Any:
    """Returns a value of a case: `$bytes`, `$float` and `$int` are what JSON lacks."""
    if isinstance(found, list):
        return [plain(each) for each in found]
    if not isinstance(found, dict):
        return found
    kind = next(iter(found), "")
    if kind == "$bytes":
        return base64.b64decode(found[kind])
    if kind == "$float":
        return float(found[kind])
    if kind == "$int":
        return int(found[kind])
    return {key: plain(each) for key, each in found.items()}


def policy(given: dict[str, Any]) -> dict[str, Any]:
    made = dict(given)
    if "tools" in made:
        made["tools"] = [TOOLS[name] for name in made["tools"]]
    if "limits" in made:
        made["limits"] = isolet.Limits(**made["limits"])
    return made


def aspects(run: isolet.Execution) -> dict[str, Any]:
    """Returns what a case may ask of an execution, by the names that it has for it."""
    error = run.error
    return {
        "status": run.status,
        "ok": run.ok,
        "value": run.value,
        "repr": run.repr,
        "stdout": run.stdout,
        "stderr": run.stderr,
        "failure": run.failure,
        "exit_code": run.exit_code,
        "session_alive": run.session_alive,
        "has_value_error": run.value_error is not None,
        "is_truncated": bool(run.truncated),
        "error_type": error and error.type,
        "error_args": error and error.args,
        "error_cause": error and error.cause and error.cause.type,
        "written": [[file.path, file.size] for file in run.files],
        "displays": [
            ["text/html", each.data.get("text/html"), each.is_result] for each in run.displays
        ],
    }


class Run:
    def __init__(self, sandbox: isolet.Sandbox, inputs: Any) -> None:
        self.sandbox = sandbox
        self.sessions = {"": sandbox.session(inputs=plain(inputs))}
        self.remembered: dict[str, Any] = {}

    def close(self) -> None:
        for session in self.sessions.values():
            session.close()

    def step(self, step: dict[str, Any]) -> None:
        session = self.sessions[step.get("in", "")]
        options = dict(step.get("options", {}))
        if "inputs" in step:
            options["inputs"] = plain(step["inputs"])
        expected = step.get("expect")
        if "run" in step:
            self.check(session.run(step["run"], **options), expected or {})
        elif "sh" in step:
            self.check(session.sh(step["sh"], **options), expected or {})
        elif "eval" in step:
            assert session.eval(step["eval"], **options) == plain(expected)
        elif "stream" in step:
            assert [heard(item) for item in session.stream(step["stream"])] == expected
        elif "get" in step:
            assert session.get(step["get"]) == plain(expected)
        elif "set" in step:
            session.set(plain(step["set"]))
        elif "delete" in step:
            assert session.delete(step["delete"]) == expected
        elif "variables" in step:
            assert sorted(each.name for each in session.variables()) == step["variables"]
        elif "put_file" in step:
            path, text = step["put_file"]
            session.files.put(path, text.encode())
        elif "get_file" in step:
            if expected is None:
                with pytest.raises(FileNotFoundError):
                    session.files.get(step["get_file"])
            else:
                assert session.files.get(step["get_file"]).decode() == expected
        elif "list_files" in step:
            found = [[entry.name, entry.is_dir] for entry in session.files.list(".")]
            assert found == step["list_files"]
        elif "remove_file" in step:
            assert session.files.remove(step["remove_file"]) == expected
        elif "fork" in step:
            self.sessions[step["fork"]] = session.fork()
        elif "reset" in step:
            session.reset()
        elif "close" in step:
            session.close()
        elif "fresh" in step:
            session.close()
            self.sessions[""] = self.sandbox.session()
        else:
            pytest.fail(f"an unknown step: {step}")

    def check(self, run: isolet.Execution, expected: dict[str, Any]) -> None:
        found = aspects(run)
        for name, wanted in expected.items():
            if name == "remember":
                self.remembered[wanted] = run.value
            elif name == "equals":
                assert run.value == self.remembered[wanted]
            elif name == "failure_has":
                assert wanted in (run.failure or "")
            elif name == "traceback_has":
                assert run.error is not None
                assert wanted in run.error.traceback
            else:
                assert found[name] == plain(wanted), f"{name} of {run!r}"


def heard(item: isolet.Output | isolet.Display | isolet.Execution) -> str:
    if isinstance(item, isolet.Output):
        return f"{item.stream}:{item.text}"
    return "display" if isinstance(item, isolet.Display) else f"value:{item.value}"


def is_error(error: BaseException, name: str) -> bool:
    return name == "any" or type(error).__name__ == name


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_case(case: dict[str, Any]) -> None:
    refused = case.get("refused")
    if refused is not None:
        with pytest.raises(isolet.IsoletError) as raised:
            isolet.Sandbox(**policy(case.get("policy", {}))).session().run("1")
        assert is_error(raised.value, refused)
        return
    run = Run(isolet.Sandbox(**policy(case.get("policy", {}))), case.get("inputs"))
    try:
        for step in case["steps"]:
            if "error" not in step:
                run.step(step)
                continue
            with pytest.raises((isolet.IsoletError, isolet.GuestError, TypeError)) as raised:
                run.step(step)
            assert is_error(raised.value, step["error"]), raised.value
    finally:
        run.close()
