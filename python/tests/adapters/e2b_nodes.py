"""Starts nodes where E2B's clients find them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from node_process import serving


@contextlib.contextmanager
def node(tmp_path: Path, config: str, *args: str, key: str = "any") -> Iterator[str]:
    """The address of a node with this configuration, where E2B's clients find it."""
    path = tmp_path / "node.toml"
    path.write_text(config)
    with serving("--config", str(path), *args) as address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("E2B_API_URL", address)
        patch.setenv("E2B_SANDBOX_URL", address)
        patch.setenv("E2B_API_KEY", key)
        yield address
