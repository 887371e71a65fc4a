"""What E2B's clients get of charts, tables and cells that exit."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from e2b_nodes import node

pytest.importorskip("e2b_code_interpreter", reason="E2B's client is not installed")

from e2b_code_interpreter import Sandbox
from e2b_code_interpreter.charts import BarChart, LineChart, SuperChart


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory) -> Iterator[Sandbox]:
    with node(tmp_path_factory.mktemp("node"), ""), Sandbox.create() as sandbox:
        yield sandbox


def test_a_chart_has_the_form_of_e2b(sandbox):
    axes = {
        "type": "line",
        "title": None,
        "elements": [{"label": None, "points": [[0, 1.5]]}],
        "x_label": "time (s)",
        "x_ticks": [0],
        "x_tick_labels": ["0"],
        "x_scale": "linear",
        "y_label": None,
        "y_ticks": [1],
        "y_tick_labels": ["1"],
        "y_scale": "log",
    }
    chart = {"type": "superchart", "title": "all", "elements": [axes, axes]}
    shown = {"application/vnd.isolet.chart.v1+json": json.dumps(chart)}
    (result,) = sandbox.run_code(f"display({shown!r}, raw=True)").results
    assert isinstance(result.chart, SuperChart)
    assert result.chart.title == "all"
    for one in result.chart.elements:
        assert isinstance(one, LineChart)
        assert (one.x_label, one.x_unit, one.y_unit) == ("time (s)", "s", None)
        assert one.elements[0].points == [(0, 1.5)]
        assert one.elements[0].label == "Line 0"
    bars = {"label": "a", "group": None, "value": 1}
    chart = {"type": "bar", "title": None, "elements": [bars], "orientation": "horizontal"}
    labels = {"x_label": "length [m]", "y_label": "kind"}
    shown = {"application/vnd.isolet.chart.v1+json": json.dumps({**chart, **labels})}
    chart = sandbox.run_code(f"display({shown!r}, raw=True)").results[0].chart
    assert isinstance(chart, BarChart)
    assert chart.elements[0].group == "Group 0"
    # As E2B has it: what the bars are of is on the first axis, whichever way they go.
    assert (chart.x_label, chart.y_label, chart.y_unit) == ("kind", "length [m]", "m")


EXITS = {
    "import sys; sys.exit(3)": ("SystemExit", "3", "SystemExit: 3"),
    "sys.exit('why')": ("SystemExit", "why", "SystemExit: why"),
    "sys.exit(0)": ("SystemExit", "0", "SystemExit: 0"),
    "sys.exit()": ("SystemExit", "", "SystemExit"),
    "raise SystemExit": ("SystemExit", "", "SystemExit"),
    "raise SystemExit([1, 2])": ("SystemExit", "[1, 2]", "SystemExit: [1, 2]"),
    "class Quit(SystemExit): pass\nraise Quit(5)": ("Quit", "5", "Quit: 5"),
    "exit()": None,
    "quit()": None,
}
"""What a kernel of IPython says of cells that exit."""


@pytest.mark.parametrize("code", EXITS)
def test_an_exit_is_shown_as_ipython_shows_it(sandbox, code):
    execution = sandbox.run_code(f"import sys; x = 1\n{code}")
    error = execution.error
    assert (error and (error.name, error.value, error.traceback)) == EXITS[code]
    assert (execution.logs.stdout, execution.logs.stderr) == ([], [])
    assert sandbox.run_code("x").text == "1"


PANDAS = """
import sys, types
class Column(list):
    tolist = list.copy
class DataFrame:
    def __init__(self, columns): self.columns = columns
    shape = property(lambda self: (len(next(iter(self.columns.values()), ())), len(self.columns)))
    def items(self): return ((name, Column(cells)) for name, cells in self.columns.items())
    def _repr_html_(self): return "<table>"
pandas = sys.modules["pandas"] = types.ModuleType("pandas")
pandas.DataFrame, pandas.NA, pandas.NaT = DataFrame, object(), object()
"""
"""As much of pandas as its tables are known by."""


def test_a_table_comes_with_its_data_unless_that_is_too_much(sandbox):
    sandbox.run_code(PANDAS)
    code = """
        import datetime
        cells = [1, 1.5, True, None, "a\\ud800", float("nan"), pandas.NA, datetime.date(2026, 1, 2)]
        display(DataFrame({"a": [1]}))
        DataFrame({"x": cells, 7: [(1, float("inf")), {2: b"b"}]})
        """
    shown, main = sandbox.run_code(code).results
    assert (shown.data, shown.is_main_result) == ({"a": [1]}, False)
    assert main.data == {
        "x": [1, 1.5, True, None, "a\\ud800", None, None, "2026-01-02"],
        "7": [[1, None], {"2": "b'b'"}],
    }
    assert (main.html, main.extra) == ("<table>", None)
    for table, reason in (
        ("{'a': [0] * 100_001}", "100001 cells, the limit is 100000"),
        ("{'a': ['b' * 2**20]}", "1048586 bytes as JSON, the limit is 1048576"),
    ):
        execution = sandbox.run_code(f"DataFrame({table})")
        assert (execution.results[0].data, execution.results[0].html) == (None, "<table>")
        assert reason in "".join(execution.logs.stderr)
