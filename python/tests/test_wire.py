"""Tests of how messages are encoded."""

from __future__ import annotations

import gc
import marshal
import os
import pathlib
import resource
import threading
from typing import Any

import pytest

import isolet
from isolet import _json, _wire

LONG = 1 << 16
FAKE = pathlib.Path(__file__).with_name("fake_server.py")


@pytest.mark.parametrize(
    "message",
    [
        ["set", 1, {"a": 1}],
        ["run", 1, 2, "x" * LONG],
        [
            "run",
            1,
            2,
            "code",
            {"text": "é" * LONG, "n": 1, "data": b"\xff" * LONG},
            {"stream": True},
        ],
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


def frame(body: bytes, size: int | None = None) -> bytes:
    return (len(body) if size is None else size).to_bytes(4, "little") + body


HOSTILE = {
    "deep": frame(b"[\1\0\0\0" * 100_000 + b"N"),
    "a text of 2 GiB": frame(b"u\xff\xff\xff\x7f"),
    "no UTF-8": frame(b"[\1\0\0\0u\1\0\0\0\xff"),
    "a number without digits": frame(b"l\xff\xff\xff\x7f"),
    "a reference to nothing": frame(b"r\0\0\0\0"),
    "a list that is a key": frame(b"[\1\0\0\0{[\0\0\0\0N0"),
    "nothing": frame(b""),
    "longer than may be": frame(b"", (1 << 30) + 1),
    "nested where it is shown": frame(b"(" + b"[\1\0\0\0" * 900 + b"N" + b"\0"),
    **{
        str(message): frame(marshal.dumps(message, 2))
        for message in [
            [],
            [1],
            ["ok"],
            ["ok", [1], None],
            ["ok", 1.5, None],
            ["error", 1, "text"],
            ["output", 1, 1, b"bytes"],
            ["display", 1, []],
            ["call", 1, 2, 3, "name"],
            ["call", 1, 2, 3, "name", {}],
            ["call", 1, 2, 3, "name", [], 4],
            ["uncall", None],
            ["audit", 1, 2, None],
            ["fatal"],
        ]
    },
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_message_ends_the_connection_with_its_beginning(name: str) -> None:
    env = {**os.environ, "FAKE": "malformed", "FRAME": HOSTILE[name].hex()}
    if len(env["FRAME"]) > LONG:
        reader = reader_of(HOSTILE[name])
        with pytest.raises(isolet.ProtocolError, match="no message"):
            read_all(reader)
        return
    with isolet.Server(FAKE, env=env) as server:
        session = isolet.Sandbox(server=server).session()
        for _ in range(2):
            with pytest.raises(isolet.ProtocolError, match="no message"):
                session.run("1")
        assert not session.alive


def reader_of(data: bytes) -> _wire.Reader:
    output, source = os.pipe()

    def write() -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(source, rest[:LONG]) :]
        os.close(source)

    threading.Thread(target=write, daemon=True).start()
    return _wire.Reader(output)


def read_all(reader: _wire.Reader) -> list[Any]:
    messages: list[Any] = []
    while reader.fill():
        reader.take(messages)
    return messages


def test_the_length_of_a_frame_takes_no_memory_before_the_frame_comes() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = frame(b"[\1\0\0\0u" + bytes(LONG), 1 << 30)
    assert read_all(reader_of(begun)) == []
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 100 << 10


@pytest.mark.parametrize("size", [LONG, 1 << 20, (1 << 20) + LONG, 5_000_001])
def test_long_frames_are_read_as_they_come(size: int) -> None:
    messages = [["output", 1, 1, "x" * size], ["uncall", 1], ["output", 2, 1, "y" * size]]
    data = b"".join(piece for message in messages for piece in _wire.encode(message))
    assert read_all(reader_of(data)) == messages


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"NaN",
        b"[-Infinity]",
        b'"\xff"',
        b'{"$bytes": 1}',
        b'{"$bytes": "?"}',
        b'{"$float": []}',
        b'{"$dict": 1}',
        b'{"$dict": [[[], 1]]}',
        b"9" * 5_000,
        b'{"a": 1',
        b"",
    ],
)
def test_what_is_no_json_of_a_node_is_told_with_its_beginning(text: bytes) -> None:
    with pytest.raises(isolet.ProtocolError, match="no JSON"):
        _json.decode(text)
