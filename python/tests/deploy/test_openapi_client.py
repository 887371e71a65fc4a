"""`/openapi.json` is valid, and a client that a public generator makes of it speaks to the node."""

from __future__ import annotations

import hashlib
import importlib
import json
import urllib.request

import pytest
from node_process import serving
from openapi_spec_validator import OpenAPIV31SpecValidator
from starting import KEY, script, told

PACKAGE = "node_client"


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    config = tmp_path_factory.mktemp("node") / "node.toml"
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    config.write_text(f'[tenants.one]\nkeys = ["sha256:{digest}"]\n')
    with serving("--config", str(config)) as address:
        yield address


@pytest.fixture(scope="module")
def description(node):
    with urllib.request.urlopen(f"{node}/openapi.json") as answer:
        return json.load(answer)


def test_the_description_is_valid(description):
    errors = [error.message for error in OpenAPIV31SpecValidator(description).iter_errors()]
    assert errors == []


def test_a_generated_client_makes_a_session_runs_code_in_it_and_deletes_it(
    node, description, tmp_path, monkeypatch
):
    (tmp_path / "openapi.json").write_text(json.dumps(description))
    # Without the programs that would format what is generated.
    (tmp_path / "config.yml").write_text("post_hooks: []\n")
    said = told(
        [
            *(script("openapi-python-client"), "generate", "--path", "openapi.json"),
            *("--config", "config.yml", "--meta", "none", "--output-path", PACKAGE),
        ],
        cwd=tmp_path,
    )
    # Lines of JSON are beyond the generator. Everything else has to be in the client.
    missed = [line for line in said.splitlines() if line.startswith("WARNING")]
    assert all("POST /v1/batch" in line for line in missed), said
    operations = {
        operation["operationId"]
        for methods in description["paths"].values()
        for operation in methods.values()
    }
    made = {path.stem for path in (tmp_path / PACKAGE / "api" / "default").glob("*_*.py")}
    assert operations - made == {"run_batch"}

    monkeypatch.syspath_prepend(tmp_path)
    api = importlib.import_module(f"{PACKAGE}.api.default")
    models = importlib.import_module(f"{PACKAGE}.models")
    client = importlib.import_module(PACKAGE).AuthenticatedClient(base_url=node, token=KEY)

    def call(operation, *args, **more):
        module = importlib.import_module(f"{api.__name__}.{operation}")
        return module.sync(*args, client=client, **more)

    limits = models.Limits(run_time=5.0)
    wanted = models.SessionRequest(policy=models.Policy(env=env(models), limits=limits))
    session = call("create_session", body=wanted)
    assert [one.id for one in call("list_sessions").sessions] == [session.id]
    code = "import os; print('out'); [os.environ['A'], 6 * 7]"
    execution = call("run_code", session.id, body=models.RunRequest(code=code))
    assert execution.status == "completed"
    assert (execution.value, execution.stdout) == (["b", 42], "out\n")
    endless = models.RunRequest(code="while True: pass", timeout=0.1)
    assert call("run_code", session.id, body=endless).status == "terminated"
    call("set_variable", session.id, "x", body=models.VariableRequest(value=[1]))
    assert call("get_variable", session.id, "x").value == [1]
    call("delete_session", session.id)
    assert call("list_sessions").sessions == []
    problem = call("get_session", session.id)
    assert (problem.status, problem.code) == (410, "gone")


def env(models):
    """A dict of strings, as the generator has it."""
    return models.PolicyEnv.from_dict({"A": "b"})
