"""`isolet.inspect_ai` is a sandbox for evaluations of Inspect."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("inspect_ai", reason="Inspect is not installed")

import inspect_ai
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, accuracy, scorer
from inspect_ai.solver import basic_agent
from inspect_ai.tool import bash, python
from inspect_ai.util import SandboxEnvironmentSpec, sandbox

from isolet.inspect_ai import Policy


def calls(*made):
    outputs = [ModelOutput.for_tool_call("mockllm", name, values) for name, values in made]
    for output in outputs:
        # Otherwise tokens are counted, which needs a file from the network.
        output.usage = ModelUsage()
    return get_model("mockllm/model", custom_outputs=outputs)


@scorer(metrics=[accuracy()])
def has_answer():
    async def score(state, target):
        found = await sandbox().read_file("answer.txt")
        ran = await sandbox().exec(["cat", "answer.txt"])
        return Score(value=found.strip() == target.text and ran.stdout == found, answer=found)

    return score


SAMPLE = {"input": "?", "target": "42", "files": {"numbers/a.txt": "40\n2\n"}}
CALLS = [
    ("bash", {"command": "cat numbers/*.txt $ADDED | wc -l; ls nosuch"}),
    ("python", {"code": "lines = open('numbers/a.txt')\nprint(sum(map(int, lines)))"}),
    ("bash", {"command": "echo 42 > answer.txt"}),
    ("submit", {"answer": "42"}),
]


def evaluate(log_dir, spec, **sample):
    def made():
        solver = basic_agent(tools=[bash(timeout=30), python(timeout=30)])
        samples = [Sample(**SAMPLE, **sample) for _ in range(2)]
        return Task(samples, solver=solver, scorer=has_answer(), sandbox=spec)

    [log] = inspect_ai.eval(
        task(name="adds")(made)(),
        model=calls(*CALLS, *CALLS),
        max_samples=1,
        log_dir=str(log_dir),
        display="none",
    )
    return log


def test_an_evaluation_uses_tools_and_scores_a_file(tmp_path):
    log = evaluate(tmp_path, "isolet", setup="echo 3 > numbers/b.txt")
    assert log.status == "success", log.error
    assert log.results.scores[0].metrics["accuracy"].value == 1
    for sample in log.samples:
        tools = [message.text for message in sample.messages if message.role == "tool"]
        assert "3\n" in tools[0]
        assert "nosuch" in tools[0]
        assert tools[1].strip() == "42"


def test_an_evaluation_has_a_policy_which_its_log_keeps(tmp_path):
    spec = SandboxEnvironmentSpec("isolet", Policy(env={"ADDED": "numbers/a.txt"}))
    log = evaluate(tmp_path, spec)
    assert log.status == "success", log.error
    tools = [message.text for message in log.samples[0].messages if message.role == "tool"]
    assert "4\n" in tools[0]
    kept = read_eval_log(log.location).eval.sandbox.config
    assert kept == Policy(env={"ADDED": "numbers/a.txt"})


def test_an_evaluation_takes_the_file_of_a_policy(tmp_path):
    (tmp_path / "policy.yaml").write_text("env: {ADDED: numbers/a.txt}")
    log = evaluate(tmp_path, ("isolet", str(tmp_path / "policy.yaml")))
    assert log.status == "success", log.error
    tools = [message.text for message in log.samples[0].messages if message.role == "tool"]
    assert "4\n" in tools[0]


def test_inspect_finds_it_by_its_entry_point():
    code = """
from inspect_ai.util._sandbox.registry import registry_find_sandboxenv
print(registry_find_sandboxenv("isolet").__module__)"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "isolet.inspect_ai\n"
