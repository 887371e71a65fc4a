"""The keywords of runs are the same for all sessions, and no others are taken."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest
from node_process import serving

import isolet
from isolet import aio, node

KINDS: list[type[Any]] = [isolet.Session, aio.Session, node.Session]


def refused(session: Any, method: str, option: str) -> str:
    """Returns why a keyword is not taken."""
    with pytest.raises(TypeError) as caught:
        ended(getattr(session, method)("x = 1", **{option: None}))
    return str(caught.value)


def ended(made: Any) -> None:
    if inspect.iscoroutine(made):
        asyncio.run(made)


def check(session: Any) -> None:
    for method in ("run", "eval"):
        assert refused(session, method, "timeut").startswith("`run` has no option 'timeut'; it has")
    assert refused(session, "stream", "on_stdout").startswith("`stream` has no option 'on_stdout';")


def test_an_option_that_does_not_exist_is_refused(session: isolet.Session) -> None:
    check(session)
    assert "x" not in session


def test_an_option_that_does_not_exist_is_refused_by_asyncio() -> None:
    async def work() -> None:
        async with aio.Sandbox().session() as session:
            await asyncio.to_thread(check, session)
            assert not await session.contains("x")

    asyncio.run(work())


def test_an_option_that_does_not_exist_is_refused_for_a_node() -> None:
    with serving() as address, node.Client(address) as client, client.session() as session:
        check(session)
        assert session.get("x", "none") == "none"


@pytest.mark.parametrize("kind", KINDS)
def test_runs_have_the_same_signature_everywhere(kind: type[Any]) -> None:
    for method, options in (
        ("run", isolet.RunOptions),
        ("eval", isolet.RunOptions),
        ("stream", isolet.StreamOptions),
    ):
        parameters = list(inspect.signature(getattr(kind, method)).parameters)[1:]
        # Those of a node are not recorded.
        own = ["code"] if kind is node.Session else ["code", "journal"]
        assert parameters == [*own, *options.__annotations__]


def test_the_help_of_runs_names_each_option() -> None:
    for kind in (isolet.Session, aio.Session, isolet.RunOptions):
        doc = inspect.getdoc(kind if kind is isolet.RunOptions else kind.run) or ""
        for name in isolet.RunOptions.__annotations__:
            assert f"`{name}`" in doc or f"    {name}: " in doc, name
