"""Runs a file of tests with a fixture and parameters."""

import pathlib

import pytest

pathlib.Path("test_x.py").write_text(
    "import pytest\n"
    "@pytest.mark.parametrize('n', [1, 2])\n"
    "def test_a(n, tmp_path):\n"
    "    assert n < 2\n"
)


class Results:
    outcomes = []

    def pytest_runtest_logreport(self, report):
        if report.when == "call":
            self.outcomes.append(report.outcome)


assert pytest.main(["-q", "test_x.py"], plugins=[Results()]) == pytest.ExitCode.TESTS_FAILED
assert Results.outcomes == ["passed", "failed"]
