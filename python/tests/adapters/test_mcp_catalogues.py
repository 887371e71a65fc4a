"""The tools of public MCP servers, as they were recorded, as functions of Python."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from isolet._find import find_binary

SERVERS = Path(__file__).parents[3] / "tests/mcp"
CATALOGUES = sorted((SERVERS / "catalogues").glob("*.json"))
COUNT = 200
"""There are more tools than this."""

DEPTH = 4
"""How deep a made-up argument is."""

CHECK = """
import inspect, io, contextlib, json, re

def letters(name):
    return re.sub(r"\\W|_", "", name).lower()

def named(function, arguments):
    parameters = list(inspect.signature(function).parameters)
    found = {}
    for name, value in arguments.items():
        fits = [p for p in parameters if letters(p) == letters(name)]
        assert len(fits) == 1, (name, parameters)
        found[fits[0]] = value
    return found

wrong = []
for name, arguments in sorted(samples.items()):
    function = getattr(tools, module).__dict__.get(name) or getattr(getattr(tools, module), name)
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        help(function)
    if f"{name}(" not in shown.getvalue():
        wrong.append((name, "help", shown.getvalue()[:200]))
    for sample in arguments:
        try:
            got = function(**named(function, sample))
        except Exception as error:
            got = f"{type(error).__name__}: {error}"
        if got != sample:
            wrong.append((name, sample, got))
wrong[:5]
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the configuration of stand-ins for the servers."""
    home = tmp_path_factory.mktemp("mcp")
    servers = {
        path.stem: {
            "command": sys.executable,
            "args": [str(SERVERS / "fake.py"), "legacy", f"catalogue={path}"],
            "isolet": {"allow": ["*"]},
        }
        for path in CATALOGUES
    }
    (home / "servers.json").write_text(json.dumps({"mcpServers": servers}))
    return home


def isolet(home: Path, *arguments: str, stdin: str = "") -> str:
    paths = {"XDG_CACHE_HOME": str(home / "cache"), "XDG_DATA_HOME": str(home / "data")}
    command = [find_binary(), "mcp", *arguments, "--config", str(home / "servers.json")]
    ran = subprocess.run(
        command,
        input=stdin,
        env=os.environ | paths,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def tools(path: Path) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(path.read_text())["tools"]
    return listed


def test_the_stubs_of_all_tools_satisfy_mypy_strictly(home: Path) -> None:
    assert sum(len(tools(path)) for path in CATALOGUES) > COUNT
    stubs = home / "stubs"
    stubs.mkdir()
    for path in CATALOGUES:
        stub = isolet(home, "stubs", path.stem)
        assert stub.count("\ndef ") == len(tools(path)), path.stem
        (stubs / f"{path.stem.replace('-', '_')}.pyi").write_text(stub)
    options = ["--config-file=", "--strict", "--python-version", "3.14"]
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "--cache-dir", str(home / "mypy"), str(stubs)],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.stem)
def test_arguments_reach_the_server_as_they_are(home: Path, path: Path) -> None:
    samples = {
        tool["name"]: [
            sample(tool["inputSchema"], tool["inputSchema"], has_optional, 0)
            for has_optional in (False, True)
        ]
        for tool in tools(path)
    }
    listed = isolet(home, "stubs", path.stem)
    names = [line.split("(")[0] for line in listed.split("\ndef ")[1:]]
    by_letters = {letters(name): arguments for name, arguments in samples.items()}
    by_name = {name: by_letters[letters(name)] for name in names}
    module = path.stem.replace("-", "_")
    code = f"import json, tools\nmodule = {module!r}\nsamples = json.loads({json.dumps(by_name)!r})"
    answers = run(home, f"{code}\n{CHECK}")
    assert answers["status"] == "ok", answers["error"]
    assert answers["value"] == []


def run(home: Path, code: str) -> dict[str, Any]:
    """Calls `run_python`, as a client of the revision 2026-07-28."""
    about = "io.modelcontextprotocol/"
    params = {
        "name": "run_python",
        "arguments": {"code": code},
        "_meta": {
            f"{about}protocolVersion": "2026-07-28",
            f"{about}clientInfo": {"name": "test", "version": "1"},
            f"{about}clientCapabilities": {},
        },
    }
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    command = [find_binary(), "mcp", "--config", str(home / "servers.json")]
    paths = {"XDG_CACHE_HOME": str(home / "cache"), "XDG_DATA_HOME": str(home / "data")}
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | paths,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            server.stdin.write(json.dumps(call) + "\n")
            server.stdin.flush()
            answer = json.loads(server.stdout.readline())
        finally:
            server.kill()
    result: dict[str, Any] = answer["result"]["structuredContent"]
    return result


def letters(name: str) -> str:
    """What a name in Python keeps of the name that it stands for."""
    return re.sub(r"\W|_", "", name).lower()


def sample(schema: Any, root: Any, has_optional: bool, depth: int) -> Any:
    """A value that the schema allows."""
    if not isinstance(schema, dict):
        return "anything"
    reference = schema.get("$ref")
    if isinstance(reference, str):
        found = root
        for part in reference.removeprefix("#").strip("/").split("/"):
            found = found[part.replace("~1", "/").replace("~0", "~")] if part else found
        return sample(found, root, has_optional, depth + 1)
    for key in ("const", "default"):
        if key == "const" and key in schema:
            return schema[key]
    if "enum" in schema:
        return schema["enum"][-1]
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return sample(schema[key][0], root, has_optional, depth)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object":
        required = schema.get("required", [])
        fields = schema.get("properties", {})
        with_all = has_optional and depth < DEPTH
        return {
            name: sample(field, root, has_optional, depth + 1)
            for name, field in fields.items()
            if name in required or with_all
        }
    if kind == "array":
        return [sample(schema.get("items"), root, has_optional, depth + 1)] if depth < DEPTH else []
    simple = {"string": "text", "integer": 3, "number": 2.5, "boolean": True, "null": None}
    return simple[kind]
