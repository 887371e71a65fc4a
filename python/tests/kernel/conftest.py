"""What the tests of the Jupyter kernel share: kernelspecs, and kernels that are started by them."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jupyter_client.manager import KernelManager

from isolet._find import find_binary

SECONDS = 60
"""How long a test may wait for one thing."""

Install = Callable[..., str]


def isolet(*args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Runs the command."""
    command = [find_binary(), *args]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    assert not check or ran.returncode == 0, ran.stderr
    return ran


@pytest.fixture(scope="session", autouse=True)
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Jupyter's directories, in which there is nothing but what the tests make."""
    directory = tmp_path_factory.mktemp("jupyter")
    named = {
        "JUPYTER_DATA_DIR": directory / "data",
        "JUPYTER_RUNTIME_DIR": directory / "runtime",
        "JUPYTER_CONFIG_DIR": directory / "config",
        "IPYTHONDIR": directory / "ipython",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, path in named.items():
            patch.setenv(name, str(path))
        isolet("jupyter", "install")
        yield directory


class Kernel:
    """A kernel, and a client of it."""

    def __init__(self, name: str = "isolet", **options: object) -> None:
        self.manager = KernelManager(kernel_name=name)
        self.manager.start_kernel(**options)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=SECONDS)

    def run(self, code: str, **options: object) -> tuple[dict, list[tuple[str, dict]]]:
        """Runs a cell. Returns the content of the answer, and what was published for the cell,
        without its beginning and end.
        """
        return self.take(self.client.execute(code, **{"allow_stdin": False, **options}))

    def take(self, message_id: str) -> tuple[dict, list[tuple[str, dict]]]:
        """Waits for the answer to a message. Returns it and what was published for it."""
        published = []
        while True:
            message = self.client.get_iopub_msg(timeout=SECONDS)
            if message["parent_header"].get("msg_id") != message_id:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                return self.answer(message_id), published
            if kind not in ("status", "execute_input"):
                published.append((kind, content))

    def answer(self, message_id: str) -> dict:
        """Waits for the answer to a message."""
        while True:
            message = self.client.get_shell_msg(timeout=SECONDS)
            if message["parent_header"].get("msg_id") == message_id:
                return message["content"]

    def value(self, code: str, **options: object) -> str:
        """The text of the value of a cell."""
        answer, published = self.run(code, **options)
        assert answer["status"] == "ok", answer
        return dict(published)["execute_result"]["data"]["text/plain"]

    def processes(self) -> list[int]:
        """The kernel's process and those beneath it."""
        return beneath(self.manager.provisioner.process.pid)

    def stop(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def beneath(pid: int) -> list[int]:
    """A process and its descendants."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found = [pid]
    for parent in found:
        found.extend(child for child, of in parents.items() if of == parent)
    return found


def is_over(pid: int) -> bool:
    """Whether a process has ended, collected by its parent or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def wait_until(condition: Callable[[], object]) -> None:
    """Waits until a condition holds. Fails if it never does."""
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    """A kernel for the tests that leave it as it was."""
    kernel = Kernel()
    yield kernel
    kernel.stop()


@pytest.fixture
def fresh() -> Iterator[Kernel]:
    """A kernel of this test alone."""
    kernel = Kernel()
    yield kernel
    kernel.stop()


@pytest.fixture
def install() -> Iterator[Install]:
    """Installs kernels with other options, until the test has ended."""
    names = []

    def install(*options: str) -> str:
        names.append(f"isolet-{os.getpid()}-{len(names)}")
        isolet("jupyter", "install", "--name", names[-1], "--", *options)
        return names[-1]

    yield install
    for name in names:
        isolet("jupyter", "uninstall", "--name", name)
