"""The batch script starts its nodes, tells their addresses, and drains them."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fleet import DEPLOY, Client, until
from node_process import SECONDS
from starting import KEY, WITH_KEY, known_options, script, told, with_key

from isolet._find import find_binary

SCRIPT = DEPLOY / "slurm" / "isolet.sbatch"
CONFIGURATION = DEPLOY / "kubernetes" / "node.toml"
# Stands for Slurm's: runs the command once for each task, here, and waits for all.
SRUN = """#!/usr/bin/env bash
while [[ $1 == --* ]]; do shift; done
for ((task = 0; task < SLURM_NTASKS; task++)); do SLURM_PROCID=$task "$@" & done
status=0
for task in $(jobs -p); do wait "$task" || status=$?; done
exit "$status"
"""


class Job:
    """A job of two tasks, with what Slurm tells it."""

    def __init__(self, home: Path):
        programs = home / "bin"
        programs.mkdir()
        (programs / "srun").write_text(SRUN)
        (programs / "srun").chmod(stat.S_IRWXU)
        (programs / "isolet").symlink_to(find_binary())
        self.config = home / "node.toml"
        self.list = home / "isolet-4711.nodes"
        self.said = home / "said"
        with self.said.open("wb") as said:
            self.process = subprocess.Popen(
                ["bash", SCRIPT],
                env={
                    **os.environ,
                    "PATH": f"{programs}:{os.environ['PATH']}",
                    "ISOLET_CONFIG": str(self.config),
                    "ISOLET_ADDRESS": "127.0.0.1",
                    "SLURM_JOB_ID": "4711",
                    "SLURM_NTASKS": "2",
                    "SLURM_SUBMIT_DIR": str(home),
                },
                stdout=said,
                stderr=said,
            )

    def clients(self) -> dict[str, Client]:
        """Clients of the nodes in the list."""
        until(lambda: self.list.exists() or self.process.poll() is not None)
        assert self.list.exists(), self.said.read_text()
        nodes = dict(line.split() for line in self.list.read_text().splitlines())
        # The host's name has an address that the nodes of a test do not listen at.
        ports = {name: url.rpartition(":")[2] for name, url in nodes.items()}
        assert all(nodes[name] == f"http://{os.uname().nodename}:{ports[name]}" for name in nodes)
        return {name: Client(f"127.0.0.1:{port}") for name, port in ports.items()}

    def number(self, task: int) -> int:
        """The number of a node's process."""
        return int((self.list.with_name(f"{self.list.name}.d") / f"{task}.pid").read_text())


@contextlib.contextmanager
def job(home: Path, config: str) -> Iterator[Job]:
    (home / "node.toml").write_text(config)
    one = Job(home)
    try:
        yield one
    finally:
        # The nodes end with what has started them.
        one.process.terminate()
        try:
            one.process.wait(SECONDS)
        finally:
            one.process.kill()


@pytest.fixture
def configuration():
    return with_key(CONFIGURATION.read_text())


def ask(client: Client, method: str, path: str, body: object = None):
    return client.ask(method, path, body, **WITH_KEY)


def numbers(clients: dict[str, Client], name: str) -> list[object]:
    """What the nodes say of themselves."""
    return [ask(client, "GET", "/v1/node").json()[name] for client in clients.values()]


def test_the_script_is_without_the_mistakes_that_shellcheck_knows():
    told([script("shellcheck"), str(SCRIPT)])
    words = SCRIPT.read_text().replace("\\\n", " ").split()
    begin = words.index("serve", words.index("isolet", words.index("exec")))
    used = {word for word in words[begin : words.index("2>", begin)] if word.startswith("--")}
    assert {"--listen", "--config", "--name"} < used <= known_options()


def test_runs_on_all_nodes_complete_while_the_job_ends(tmp_path, configuration):
    with job(tmp_path, configuration) as one, ThreadPoolExecutor() as threads:
        clients = one.clients()
        assert list(clients) == ["job4711-0", "job4711-1"]
        runs = []
        for name, client in clients.items():
            session = ask(client, "POST", "/v1/sessions").json()["id"]
            assert session.startswith(f"{name}-")
            code = {"code": "import time\ntime.sleep(3)\nprint(6 * 7)"}
            path = f"/v1/sessions/{session}/runs"
            runs.append(threads.submit(ask, client, "POST", path, code))
        until(lambda: numbers(clients, "running") == [1, 1])
        one.process.send_signal(signal.SIGTERM)
        until(lambda: numbers(clients, "is_draining") == [True, True])
        assert [run.result(SECONDS).json()["stdout"] for run in runs] == ["42\n"] * 2
        assert one.process.wait(SECONDS) == 0
        assert list(tmp_path.glob("isolet-*")) == []


def test_a_node_that_ends_leaves_the_others(tmp_path, configuration):
    with job(tmp_path, configuration) as one:
        clients = one.clients()
        os.kill(one.number(0), signal.SIGKILL)
        until(lambda: not os.path.exists(f"/proc/{one.number(0)}"))
        ran = ask(clients["job4711-1"], "POST", "/v1/run", {"code": "print(6 * 7)"})
        assert ran.json()["stdout"] == "42\n"
        one.process.terminate()
        assert one.process.wait(SECONDS) == 128 + signal.SIGKILL


def test_a_job_whose_nodes_cannot_start_ends_and_says_why(tmp_path):
    with job(tmp_path, f"max_session = 1 # {KEY}") as one:
        assert one.process.wait(SECONDS) == 1
        assert "unknown field `max_session`" in one.said.read_text()
        assert not one.list.exists()
