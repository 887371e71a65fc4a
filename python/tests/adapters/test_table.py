"""README.md says which line to change for each framework: the names in it exist."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent.parent / "README.md"

FRAMEWORKS = {"adk": "google.adk"}
"""The modules of frameworks whose names are not those of the adapters."""

TABLE = "\n".join(line for line in README.read_text().splitlines() if line.startswith("|"))
NAMES = re.findall(r"\bisolet\.(?!compat)(\w+)\.(\w+)", TABLE)


def test_the_table_names_every_adapter():
    source = Path(importlib.import_module("isolet").__file__).parent
    adapters = {
        path.stem for path in source.glob("[!_]*.py") if "Needs " in path.read_text()[:1000]
    }
    assert {module for module, _ in NAMES} == {*adapters, "function_tools"}


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_name_of_the_table_exists(module: str, name: str):
    if module != "function_tools":
        pytest.importorskip(FRAMEWORKS.get(module, module), reason="it is not installed")
    assert callable(getattr(importlib.import_module(f"isolet.{module}"), name))


def test_the_interface_of_e2b_exists():
    assert "`from isolet.compat.e2b import Sandbox`" in TABLE
    from isolet.compat.e2b import Sandbox

    assert callable(Sandbox.create)
