"""How long a thread looks for the server's answer before it sleeps."""

from __future__ import annotations

from typing import Any

import pytest

from isolet import _patience
from isolet._patience import Patience

MICROSECOND = 1e-6


class World:
    """A clock that each look moves on by a microsecond, and a server that answers at a time."""

    def __init__(self, answer: float) -> None:
        self.now = 0.0
        self.answer = answer
        self.looks = 0
        self.sleeps: list[float | None] = []

    def clock(self) -> float:
        return self.now

    def poll(self, milliseconds: float | None) -> list[int]:
        if milliseconds == 0:
            self.looks += 1
            self.now += MICROSECOND
            return [1] if self.now >= self.answer else []
        self.sleeps.append(milliseconds)
        self.now += 1.0 if milliseconds is None else milliseconds / 1000
        return [1] if self.now >= self.answer else []


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> Patience:
    monkeypatch.setattr(_patience, "_processors", lambda: 2)
    return Patience()


def waited(
    monkeypatch: pytest.MonkeyPatch, patience: Patience, answer: float, **options: Any
) -> World:
    world = World(answer)
    monkeypatch.setattr(_patience, "perf_counter", world.clock)
    patience.wait(world.poll, 200, **{"is_alone": True, **options})
    return world


def test_a_short_answer_is_seen_without_sleeping(
    monkeypatch: pytest.MonkeyPatch, patience: Patience
) -> None:
    for _ in range(3):
        world = waited(monkeypatch, patience, 250 * MICROSECOND)
        assert world.sleeps == []
        assert world.looks >= 249


def test_after_long_answers_a_thread_looks_for_a_shorter_time_and_sleeps(
    monkeypatch: pytest.MonkeyPatch, patience: Patience
) -> None:
    looks: list[int] = []
    for _ in range(8):
        world = waited(monkeypatch, patience, 0.5)
        assert world.sleeps == [200, 200, 200]
        looks.append(world.looks)
    assert looks == sorted(looks, reverse=True)
    assert looks[0] >= 299
    assert looks[-1] <= 22
    # A short one that comes within that time makes it patient again.
    waited(monkeypatch, patience, 10 * MICROSECOND)
    assert waited(monkeypatch, patience, 250 * MICROSECOND).sleeps == []


def test_nobody_looks_where_others_wait_or_the_server_has_no_other_processor(
    monkeypatch: pytest.MonkeyPatch, patience: Patience
) -> None:
    assert waited(monkeypatch, patience, 0.1, is_alone=False).looks == 0
    monkeypatch.setattr(_patience, "_processors", lambda: 1)
    assert waited(monkeypatch, Patience(), 0.1).looks == 0
