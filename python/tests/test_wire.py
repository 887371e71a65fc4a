"""Tests of how messages are encoded."""

from __future__ import annotations

import gc
import marshal
from typing import Any

import isolet
import pytest
from isolet import _wire

LONG = 1 << 16


@pytest.mark.parametrize(
    "message",
    [
        ["set", 1, {"a": 1}],
        ["run", 1, 2, "x" * LONG],
        ["run", 1, 2, "code", {"text": "é" * LONG, "n": 1, "data": b"\xff" * LONG}, {"stream": True}],
        ["return", 1, {"a": {"b": "x" * LONG, "c": {"d": "x" * LONG}}, "l": ["x" * LONG]}],
        ["set", 1, {str(i): "x" * LONG for i in range(101)}],
        ["put", "x" * (LONG - 1), b"x" * LONG, "x" * LONG],
    ],
)
def test_a_frame_in_pieces_is_the_message(message: list[Any]) -> None:
    frame = b"".join(_wire.encode(message))
    assert int.from_bytes(frame[:4], "little") == len(frame) - 4
    assert marshal.loads(frame[4:]) == message


def test_what_is_long_is_a_piece_that_is_not_copied() -> None:
    data = b"x" * LONG
    _, piece, _ = _wire.encode(["put", {"data": data}])
    assert piece is data


def test_nothing_else_keeps_the_pieces_of_a_frame() -> None:
    gc.disable()
    try:
        pieces = _wire.encode(["put", {"text": "x" * LONG}])
        assert [each is pieces for each in gc.get_referrers(pieces[1])] == [True]
    finally:
        gc.enable()


def test_long_values_of_all_kinds_cross_to_the_guest(session: isolet.Session) -> None:
    inputs = {"text": "é\U0001f600" * LONG, "data": bytes(LONG), "nested": {"text": "x" * LONG}}
    code = "text == 'é\U0001f600' * n and data == bytes(n) and nested == {'text': 'x' * n}"
    assert session.run(code, inputs={**inputs, "n": LONG}).value is True
