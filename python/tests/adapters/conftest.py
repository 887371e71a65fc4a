"""What the tests of the adapters share."""

from __future__ import annotations

import pytest

import isolet


@pytest.fixture(scope="session")
def sandbox():
    with isolet.Sandbox() as sandbox:
        yield sandbox
