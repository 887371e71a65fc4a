"""Saved sessions of the client: one that is restored goes on, under the policy of its sandbox."""

from __future__ import annotations

import asyncio

import pytest

import isolet
from isolet import aio


def test_a_restored_session_has_what_the_saved_one_had(tmp_path):
    file = tmp_path / "session"
    with isolet.Sandbox().session() as session:
        session.run("words = ['a']")
        session.files.put("note.txt", "kept")
        session.save(file)
        session.run("words.append('later')")
    with isolet.Sandbox().restore(file) as session:
        assert session["words"] == ["a"]
        assert session.files.get("note.txt") == b"kept"
        session.save(str(file))
    assert isolet.Sandbox().restore(str(file)).eval("words") == ["a"]


def test_a_restored_session_has_the_tools_of_its_sandbox(tmp_path):
    def ask() -> str:
        return "new"

    file = tmp_path / "session"
    with isolet.Sandbox().session() as session:
        session.run("x = 1")
        session.save(file)
    with isolet.Sandbox(tools=[ask]).restore(file) as session:
        assert session.eval("[x, ask()]") == [1, "new"]


def test_what_cannot_be_saved_is_named_and_the_session_lives_on(tmp_path):
    with isolet.Sandbox().session() as session:
        session.run("import js; kept = js.Object.new()")
        with pytest.raises(isolet.TransferError, match="`kept` of the module `__main__`"):
            session.save(tmp_path / "session")
        assert session.eval("1") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_session_is_an_error_at_the_first_use(tmp_path):
    file = tmp_path / "session"
    file.write_text("something else")
    session = isolet.Sandbox().restore(file)
    with pytest.raises(isolet.ConfigError, match="no saved session"):
        session.run("1")


def test_sessions_are_saved_and_restored_with_asyncio(tmp_path):
    async def main() -> object:
        file = tmp_path / "session"
        async with aio.Sandbox().session() as session:
            await session.run("x = 41")
            await session.save(file)
        async with aio.Sandbox().restore(file) as session:
            return await session.eval("x + 1")

    assert asyncio.run(main()) == 42
