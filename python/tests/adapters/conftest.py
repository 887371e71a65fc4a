"""What the tests of the adapters share."""

from __future__ import annotations

import os

import pytest

import isolet


@pytest.fixture(scope="session")
def sandbox():
    with isolet.Sandbox() as sandbox:
        yield sandbox


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    """Makes a skipped test fail the run in CI, where each framework is installed."""
    if os.environ.get("CI") and _skipped(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    skipped = _skipped(config)
    if os.environ.get("CI") and skipped:
        terminalreporter.write_line(f"{len(skipped)} skipped, and in CI every test has to run")


def _skipped(config):
    # The processes that pytest-xdist starts report to the first one.
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return reporter.stats.get("skipped", []) if reporter else []
