"""A node says where it listens, whatever the format of its log."""

from __future__ import annotations

import subprocess

import pytest

from isolet._find import find_binary
from isolet._node_lines import address_in


@pytest.mark.parametrize("log", ["off", "text", "json"])
def test_the_address_of_a_node_is_found_in_any_format_of_its_log(log: str) -> None:
    command = [find_binary(), "serve", "--listen", "127.0.0.1:0", "--die-with-parent", "--log", log]
    node = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert node.stderr is not None
    found = next(filter(None, map(address_in, node.stderr)))
    assert found.startswith("http://127.0.0.1:")
    node.terminate()
    assert [address for line in node.stderr if (address := address_in(line))] == []
    assert node.wait(60) == 0
    node.stderr.close()


def test_what_is_no_start_has_no_address() -> None:
    for line in ("", "isolet: fetching\n", '{"time":1.0,"event":"request","route":"/"}\n'):
        assert address_in(line) is None
