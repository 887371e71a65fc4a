"""Forked sessions of the client: a copy has what the session had, and the two are apart."""

from __future__ import annotations

import asyncio

import pytest

import isolet
from isolet import aio


@pytest.fixture
def session():
    with isolet.Sandbox(forkable=10).session() as session:
        yield session


def test_a_copy_has_what_the_session_had_and_both_go_on_apart(session):
    session.run("words = ['a']")
    session.files.put("note.txt", "before")
    copy = session.fork()
    copy.run("words.append('b')")
    copy.files.put("note.txt", "after")
    assert (session["words"], copy["words"]) == (["a"], ["a", "b"])
    assert (session.files.get("note.txt"), copy.files.get("note.txt")) == (b"before", b"after")
    session.close()
    assert copy.eval("len(words)") == 2
    assert copy.fork().eval("words") == ["a", "b"]


def test_many_copies_search_from_one_state(session):
    session.run("total = 100")
    copies = session.fork_many(5)
    assert [copy.eval(f"total + {at}") for at, copy in enumerate(copies)] == list(range(100, 105))


def test_a_copy_calls_the_tools_of_its_session():
    seen = []

    def note(text: str) -> int:
        seen.append(text)
        return len(seen)

    with isolet.Sandbox(tools=[note], forkable=3).session() as session:
        assert session.eval("note('first')") == 1
        assert session.fork().eval("note('second')") == 2
    assert seen == ["first", "second"]


def test_a_copy_reports_how_it_is_isolated(session):
    copy = session.fork()
    assert (copy.isolation.kind, copy.isolation.layers) == ("process", session.isolation.layers)


def test_what_was_not_built_for_it_cannot_be_forked():
    with isolet.Sandbox().session() as session:
        with pytest.raises(isolet.ConfigError, match="forkable"):
            session.fork()
        assert session.eval("1") == 1


def test_there_are_no_more_copies_than_the_policy_says():
    with isolet.Sandbox(forkable=1).session() as session:
        copy = session.fork()
        with pytest.raises(isolet.LimitError, match="limit 1, needed 2"):
            session.fork()
        copy.close()
        assert session.fork().eval("1") == 1


def test_a_closed_session_cannot_be_forked(session):
    session.close()
    with pytest.raises(isolet.SessionClosedError):
        session.fork()


def test_sessions_are_forked_by_tasks():
    async def main():
        async with aio.Sandbox(forkable=5).session() as session:
            await session.run("x = 1")
            copies = await session.fork_many(3)
            results = await asyncio.gather(*(copy.eval("x + 1") for copy in copies))
            assert results == [2, 2, 2]
            deeper = await copies[0].fork()
            assert await deeper.eval("x") == 1

    asyncio.run(main())
