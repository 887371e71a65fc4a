"""What the tests of the folders that start nodes share."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import tomllib
from fleet import DEPLOY
from node_process import SECONDS

from isolet._find import find_binary

ROOT = DEPLOY.parent
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
KEY = "a key of the tests"
WITH_KEY = {"Authorization": f"Bearer {KEY}"}


def told(command: list[str], **more: Any) -> str:
    """What a command says, which has to succeed."""
    ran = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=SECONDS, **more
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def known_options() -> set[str]:
    """The options that `isolet serve` has."""
    said = told([find_binary(), "serve", "--help"])
    return set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", said, re.MULTILINE))


def options(words: list[str]) -> set[str]:
    """The options among these words."""
    return {word.partition("=")[0] for word in words if word.startswith("--")}


def with_key(configuration: str) -> str:
    """A configuration whose tenant has a key that the tests know."""
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    text, count = re.subn(r'"sha256:[0-9a-f]{64}"', f'"sha256:{digest}"', configuration)
    assert count == 1
    return text


def script(name: str) -> str:
    """The path of a program that pip has installed."""
    return str(Path(sys.executable).parent / name)
