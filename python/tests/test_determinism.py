"""What sessions with a seed take from chance and time is the same each time."""

from __future__ import annotations

import datetime

import pytest
from node_process import serving

import isolet
from isolet import node

DRAW = "import random, time, uuid; print(random.random(), uuid.uuid4(), time.time())"


def drawn(**policy: object) -> list[str]:
    with isolet.Sandbox(**policy).session() as session:  # type: ignore[arg-type]
        return session.run(DRAW).stdout.split()


def test_a_seed_and_a_start_time_decide_what_a_program_prints() -> None:
    assert drawn(seed=7) == drawn(seed=7)
    assert drawn(seed=7)[:2] != drawn(seed=2**64 - 1)[:2]
    assert float(drawn(seed=7)[2]) == pytest.approx(1767225600, abs=1)
    noon = datetime.datetime(2027, 3, 4, 12, tzinfo=datetime.timezone.utc)
    for start_time in (noon, noon.timestamp()):
        later = drawn(seed=7, start_time=start_time)
        assert later[:2] == drawn(seed=7)[:2]
        assert float(later[2]) == pytest.approx(noon.timestamp(), abs=1)


def test_what_is_no_seed_and_no_time_is_refused() -> None:
    with pytest.raises(isolet.ConfigError, match="`start_time` needs a `seed`"):
        drawn(start_time=1.0)
    with pytest.raises(isolet.ConfigError, match="has to be a time"):
        drawn(seed=7, start_time="noon")
    with pytest.raises(isolet.ConfigError, match="which is no time of day"):
        drawn(seed=7, start_time=1e300)
    for seed in (-1, 2**64, "7"):
        with pytest.raises(isolet.ConfigError):
            drawn(seed=seed)


def test_a_node_has_sessions_with_seeds() -> None:
    with serving() as address:
        client = node.Client(address)
        found = []
        for seed in (7, 7, 8):
            with client.session(seed=seed) as session:
                found.append(session.run(DRAW).stdout)
        assert found[0] == found[1] != found[2]
