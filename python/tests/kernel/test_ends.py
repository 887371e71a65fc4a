"""How kernels end: whatever happens to their front ends, no process stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Kernel, beneath, is_over, wait_until

STARTER = """
import sys
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(kernel_name="isolet")
client.execute("while True: pass")
print(manager.provisioner.process.pid, flush=True)
sys.stdin.read()
"""


def all_over(pids: list[int]) -> bool:
    return all(map(is_over, pids))


def test_a_kernel_that_is_asked_to_ends_with_its_processes(fresh: Kernel) -> None:
    assert fresh.value("1") == "1"
    processes = fresh.processes()
    assert len(processes) > 1
    fresh.manager.shutdown_kernel()
    wait_until(lambda: all_over(processes))


def test_a_kernel_ends_while_a_cell_runs(fresh: Kernel) -> None:
    fresh.client.execute("print('begun'); \nwhile True: pass")
    while fresh.client.get_iopub_msg(timeout=60)["content"].get("text") != "begun\n":
        pass
    processes = fresh.processes()
    fresh.client.shutdown()
    wait_until(lambda: all_over(processes))


def test_a_restarted_kernel_has_a_fresh_session(fresh: Kernel) -> None:
    fresh.run("x = 1")
    processes = fresh.processes()
    fresh.manager.restart_kernel()
    fresh.client.wait_for_ready(timeout=60)
    answer, _ = fresh.run("x")
    assert answer["ename"] == "NameError"
    assert answer["execution_count"] == 1
    wait_until(lambda: all_over(processes))


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_kernel_that_is_killed_leaves_nothing(fresh: Kernel, how: signal.Signals) -> None:
    fresh.client.execute("while True: pass")
    processes = fresh.processes()
    os.kill(processes[0], how)
    wait_until(lambda: all_over(processes))


def test_a_kernel_ends_with_the_process_that_has_started_it() -> None:
    command = [sys.executable, "-c", STARTER]
    front_end = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert front_end.stdout is not None
    processes = beneath(int(front_end.stdout.readline()))
    assert len(processes) > 1
    front_end.kill()
    wait_until(lambda: all_over(processes))
    front_end.wait()


def test_a_kernel_ends_with_its_connection_file(fresh: Kernel) -> None:
    processes = fresh.processes()
    Path(fresh.manager.connection_file).unlink()
    wait_until(lambda: all_over(processes))


def test_an_interrupt_by_a_signal_ends_the_cell_only(fresh: Kernel) -> None:
    message = fresh.client.execute("print('begun'); \nwhile True: pass")
    while fresh.client.get_iopub_msg(timeout=60)["content"].get("text") != "begun\n":
        pass
    os.kill(fresh.processes()[0], signal.SIGINT)
    assert fresh.take(message)[0]["ename"] == "KeyboardInterrupt"
    assert fresh.value("1") == "1"
