"""README.md says which line to change for each framework: the names in it exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import isolet

README = Path(__file__).parent.parent.parent / "README.md"

SOURCE = Path(isolet.__file__).parent
TABLE = "\n".join(line for line in README.read_text().splitlines() if line.startswith("|"))
NAMES = re.findall(r"\bisolet\.(?!compat)(\w+)\.(\w+)", TABLE)


def test_the_table_names_every_adapter():
    adapters = {
        path.stem for path in SOURCE.glob("[!_]*.py") if "Needs " in path.read_text()[:1000]
    }
    assert {module for module, _ in NAMES} == {*adapters, "function_tools"}


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_name_of_the_table_exists(module: str, name: str):
    # Not imported: its framework may be in another environment.
    tree = ast.parse((SOURCE / f"{module}.py").read_text())
    assert name in {getattr(node, "name", None) for node in tree.body}


def test_the_interface_of_e2b_exists():
    assert "`from isolet.compat.e2b import Sandbox`" in TABLE
    from isolet.compat.e2b import Sandbox

    assert callable(Sandbox.create)
