"""What the tests share: a server, and waits that end."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from browser import Seen

import isolet

SECONDS = 50
"""How long a test may wait."""

# What starts tests in the background has them ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def server() -> Iterator[isolet.Server]:
    """A server for the tests that do not end theirs."""
    with isolet.Server() as server:
        yield server


@pytest.fixture
def session(server: isolet.Server) -> Iterator[isolet.Session]:
    """A session that may do nothing but compute."""
    with isolet.Sandbox(server=server).session() as session:
        yield session


@pytest.fixture
def fresh() -> Iterator[isolet.Server]:
    """A server of this test alone."""
    with isolet.Server() as server:
        yield server


def until(condition: Callable[[], object], seconds: float = 20) -> None:
    """Waits until a condition holds. Fails if it never does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.005)


def in_threads(count: int, work: Callable[[int], object]) -> list[BaseException | object]:
    """Runs `work` in threads. Returns what each has returned or raised."""
    found: list[BaseException | object] = [None] * count

    def run(index: int) -> None:
        try:
            found[index] = work(index)
        except BaseException as error:
            found[index] = error

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive()
    return found


@pytest.fixture
def seen() -> Iterator[Seen]:
    """A server that notes what a browser asks it for."""
    seen = Seen()
    yield seen
    seen.server.shutdown()
    seen.server.server_close()
