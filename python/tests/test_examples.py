"""The programs in `examples/`, run as a user runs them."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SECONDS = 100
"""How long an example may take. The first one may have to make an image, or fetch packages."""

TOTALS = {"Bergen": 1612.5, "Genoa": 2742.25, "Lisbon": 4042.0, "Riga": 5683.5}
"""Sums of number times price in the rows of `data_analysis.sales`, computed with awk."""


def example(name: str, directory: Path, *args: str) -> list[str]:
    """Runs an example in a directory. Returns the lines that it prints."""
    ran = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *args],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode == 0, f"{name} printed\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout.splitlines()


def test_each_example_has_a_test():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {
        "data_analysis.py",
        "failed_agent.py",
        "pool.py",
        "rlm.py",
        "scored_rollout.py",
        "take_back.py",
        "weekend_approval.py",
    }


def test_a_journal_shows_an_agent_at_the_call_at_which_it_failed(tmp_path: Path):
    assert example("failed_agent.py", tmp_path) == [
        "failed: ValueError",
        "stopped in plan with box, counted, found, shelf",
        "shelf, box: [10, 11]",
        "the answer before: 20",
    ]


def test_an_approval_takes_the_weekend_and_each_bill_is_paid_once(tmp_path: Path):
    assert example("weekend_approval.py", tmp_path) == [
        "asked: pay 3 bills, 480 EUR?",
        "paid 3",
        "paid 4",
        "paid 5",
        "paid once each: ['3', '4', '5']",
    ]


def test_a_rollout_is_scored_twice_and_asks_its_environment_once(tmp_path: Path):
    assert example("scored_rollout.py", tmp_path) == [
        "first reward: True",
        "second reward: True",
        "asked again: 0",
    ]


def test_an_agent_takes_back_its_bad_steps_and_keeps_the_others(tmp_path: Path):
    lines = example("take_back.py", tmp_path)
    kept = [line for line in lines if line.endswith("kept")]
    assert [line[5] for line in kept] == list("1346")
    assert lines[-1] == "cake: 17.5"


def test_a_recursive_language_model_finds_what_a_long_text_hides(tmp_path: Path):
    lines = example("rlm.py", tmp_path)
    # The parts of the text, and each of the four letters once more.
    assert lines[-2:] == ["200 crates, letters [211, 1042, 1777, 2650]", "76 calls of llm_query"]
    assert "str 1050976" in lines
    assert "ValueError: the prompt has 1051048 characters, the most is 20000" in lines
    assert "confirmed: True" in lines


def test_64_sessions_in_one_loop_keep_apart(tmp_path: Path):
    assert example("pool.py", tmp_path) == [
        "64 sessions, 576 calls of rate(), all results as expected",
        "customer 13 was stopped once, and has 9 orders like all others",
    ]


def totals(path: Path) -> dict[str, float]:
    with path.open(newline="") as file:
        return {row["city"]: float(row["total"]) for row in csv.DictReader(file)}


def test_a_data_analysis_needs_no_package(tmp_path: Path):
    lines = example("data_analysis.py", tmp_path)
    assert lines[0] == "dropped 11 rows without a number"
    assert lines[-3:] == [
        "most revenue: Riga",
        f"wrote {Path('analysis', '001.svg')}",
        f"wrote {Path('analysis', 'summary.csv')}",
    ]
    assert totals(tmp_path / "analysis/summary.csv") == TOTALS
    picture = ET.fromstring((tmp_path / "analysis/001.svg").read_text())
    texts = [each.text for each in picture.iter("{http://www.w3.org/2000/svg}text")]
    shown = [text for city, total in TOTALS.items() for text in (city, f"{total:.0f}")]
    assert texts == ["Revenue in EUR", *shown]


@pytest.mark.skipif(
    "ISOLET_TEST_WHEELS" not in os.environ,
    reason="`ISOLET_TEST_WHEELS` names no directory with Pyodide's builds of pandas and matplotlib",
)
def test_a_data_analysis_uses_pandas_and_matplotlib(tmp_path: Path):
    wheels = os.environ["ISOLET_TEST_WHEELS"]
    lines = example("data_analysis.py", tmp_path, "--pandas", "--wheels", wheels, "--output", "out")
    assert lines[0] == "dropped 11 rows without a number"
    assert "most revenue: Riga" in lines
    assert totals(tmp_path / "out/summary.csv") == TOTALS
    assert (tmp_path / "out/001.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    chart = json.loads((tmp_path / "out/001.chart.json").read_text())
    assert chart["type"] == "bar"
    assert {bar["label"]: float(bar["value"]) for bar in chart["elements"]} == TOTALS
