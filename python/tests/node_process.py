"""Starts nodes, `isolet serve --listen`, for the tests that speak to them."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Iterator

from isolet._find import find_binary

SECONDS = 60
"""How long a node may take to end."""


def started(*args: str, listen: str = "127.0.0.1:0") -> tuple[subprocess.Popen[str], str]:
    """Starts a node, which ends with this process. Returns it and its address."""
    command = [find_binary(), "serve", "--listen", listen, "--die-with-parent", *args]
    node = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert node.stderr is not None
    for line in node.stderr:
        if " listening at " in line:
            # What it says later must not fill the pipe.
            threading.Thread(target=node.stderr.read, daemon=True).start()
            return node, line.split(" listening at ")[1].strip()
    raise AssertionError(f"the node ended with status {node.wait(SECONDS)}")


@contextlib.contextmanager
def serving(*args: str, listen: str = "127.0.0.1:0") -> Iterator[str]:
    """The address of a node, which has to end in order."""
    node, address = started(*args, listen=listen)
    try:
        yield address
        node.terminate()
        assert node.wait(SECONDS) == 0
    finally:
        node.kill()
        node.wait(SECONDS)
