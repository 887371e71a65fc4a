"""The Compose files have a node, and front ends run their code on it with the key that it has."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
import requests
import tomllib
import yaml
from fleet import DEPLOY
from node_process import SECONDS, serving
from starting import KEY, VERSION, known_options, options

COMPOSE = DEPLOY / "compose"
FRONT_ENDS = ("dify", "librechat")
FILES = (*FRONT_ENDS, "node")

# What a front end reads: Dify's `CodeExecutionSandboxConfig`, and `EnvVar` of LibreChat's agents.
READ = {
    "dify": {"CODE_EXECUTION_ENDPOINT", "CODE_EXECUTION_API_KEY"},
    "librechat": {"LIBRECHAT_CODE_BASEURL", "LIBRECHAT_CODE_API_KEY"},
}
SERVICES = {"dify": ("api", "worker"), "librechat": ("api",)}


def filled(value: Any) -> Any:
    """What Compose makes of variables with the `.env` of the README."""
    variables = {
        "ISOLET_KEY": KEY.replace(" ", "-"),
        "ISOLET_KEY_SHA256": hashlib.sha256(KEY.replace(" ", "-").encode()).hexdigest(),
    }

    def fill(match: re.Match[str]) -> str:
        name, default = match.groups()
        return default.removeprefix(":-") if default.startswith(":-") else variables[name]

    if isinstance(value, dict):
        return {name: filled(each) for name, each in value.items()}
    if isinstance(value, list):
        return [filled(each) for each in value]
    if isinstance(value, str):
        return re.sub(r"\$\{(\w+)(:[?-][^}]*)\}", fill, value)
    return value


def composed(name: str) -> dict[str, Any]:
    return filled(yaml.safe_load((COMPOSE / f"{name}.yaml").read_text()))


def environment(service: dict[str, Any]) -> dict[str, str]:
    given = service["environment"]
    return dict(each.split("=", 1) for each in given) if isinstance(given, list) else given


@pytest.mark.parametrize("name", FILES)
def test_the_node_is_locked_down_and_its_command_has_options_that_there_are(name: str) -> None:
    node = composed(name)["services"]["isolet"]
    assert node["image"] == f"isolet:{VERSION}"
    assert options(node["command"]) <= known_options()
    for hardened in ("read_only", "cap_drop", "security_opt", "ulimits"):
        assert node[hardened]
    # It would hide the memory image.
    assert not {"tmpfs", "volumes"} & node.keys()


@pytest.mark.parametrize("name", FRONT_ENDS)
def test_the_front_end_finds_the_node_and_nobody_else_does(name: str) -> None:
    file = composed(name)
    node = file["services"]["isolet"]
    assert "ports" not in node
    for service in SERVICES[name]:
        own = environment(file["services"][service])
        assert set(own) == READ[name]
        port = node["command"][1].rsplit(":", 1)[1]
        assert any(f"isolet:{port}" in value for value in own.values())
    if name == "librechat":
        assert file["networks"]["isolet"]["internal"]
        assert node["networks"] == ["isolet"]
        assert "isolet" in file["services"]["api"]["networks"]


def started(name: str, directory: Path) -> Any:
    """A node with the file's configuration and options, at an address of this machine."""
    file = composed(name)
    node = file["services"]["isolet"]
    (mount,) = node["configs"]
    content = file["configs"][mount["source"]]["content"]
    tomllib.loads(content)
    assert mount["target"] == node["command"][node["command"].index("--config") + 1]
    config = directory / "node.toml"
    config.write_text(content)
    return serving("--config", str(config))


def test_a_code_node_of_dify_runs_with_what_its_services_have(tmp_path: Path) -> None:
    own = environment(composed("dify")["services"]["worker"])
    with started("dify", tmp_path) as address:
        body = {"language": "python3", "code": "print(6 * 7)", "preload": ""}
        endpoint = own["CODE_EXECUTION_ENDPOINT"].replace("http://isolet:8080", address)
        for key, status in [(own["CODE_EXECUTION_API_KEY"], 200), ("dify-sandbox", 401)]:
            answer = requests.post(
                f"{endpoint}/v1/sandbox/run",
                json=body,
                headers={"X-Api-Key": key},
                timeout=SECONDS,
            )
            assert answer.status_code == status
            assert status != 200 or answer.json()["data"]["stdout"] == "42\n"


def test_an_agent_of_librechat_runs_code_with_what_its_service_has(tmp_path: Path) -> None:
    own = environment(composed("librechat")["services"]["api"])
    with started("librechat", tmp_path) as address:
        place = address.removeprefix("http://")
        base = own["LIBRECHAT_CODE_BASEURL"].replace("isolet:8080", place)
        body = {"lang": "py", "code": "print(6 * 7)"}
        answer = requests.post(f"{base}/exec", json=body, timeout=SECONDS)
        assert answer.json()["stdout"] == "42\n"
        bare = f"http://{place}/librechat/exec"
        older = {"X-API-Key": own["LIBRECHAT_CODE_API_KEY"]}
        answer = requests.post(bare, json=body, headers=older, timeout=SECONDS)
        assert answer.json()["stdout"] == "42\n"
        assert requests.post(bare, json=body, timeout=SECONDS).status_code == 401


def test_a_node_by_itself_runs_code_for_who_has_the_key_on_this_machine(tmp_path: Path) -> None:
    file = composed("node")
    (port,) = file["services"]["isolet"]["ports"]
    assert port.startswith("127.0.0.1:")
    assert port.endswith(":8080")
    readme = (COMPOSE / "README.md").read_text()
    (path,) = re.findall(r"curl .*127\.0\.0\.1:8080(/\S*)", readme)
    key = environment(composed("dify")["services"]["worker"])["CODE_EXECUTION_API_KEY"]
    with started("node", tmp_path) as address:
        for given, status in [(key, 200), ("another", 401)]:
            answer = requests.post(
                address + path,
                json={"code": "print(6 * 7)"},
                headers={"Authorization": f"Bearer {given}"},
                timeout=SECONDS,
            )
            assert answer.status_code == status
            assert status != 200 or "42" in answer.text


def test_the_commands_of_the_readme_make_the_variables_that_the_files_need() -> None:
    readme = (COMPOSE / "README.md").read_text()
    for name in FILES:
        needed = set(re.findall(r"\$\{(\w+):\?\}", (COMPOSE / f"{name}.yaml").read_text()))
        own = {"ISOLET_KEY"} if name in FRONT_ENDS else set[str]()
        assert needed == own | {"ISOLET_KEY_SHA256"}
        assert all(f"{variable}=" in readme for variable in needed)
        assert f"-f {name}.yaml up" in readme
