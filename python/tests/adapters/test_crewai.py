"""`isolet.function_tools` with CrewAI, which cannot be installed beside the other frameworks."""

from __future__ import annotations

import pytest

pytest.importorskip("crewai", reason="CrewAI is not installed")

from crewai.tools import tool

from isolet.function_tools import tool_function


def test_crewai_calls_it(sandbox):
    with sandbox.session() as session:
        made = tool(tool_function(session))
        assert made.name == "run_python"
        assert made.run(code="6 * 7") == "42"
