"""What crosses to the guest, and what the error says when something does not."""

from __future__ import annotations

import array
import collections
import dataclasses
import datetime
import decimal
import enum
import math
import pathlib
import types
import uuid
from typing import Any

import numpy as np
import pydantic
import pytest
from parameter_ids import shown

import isolet
from isolet._values import MAX_DEPTH, to_plain, variables


@dataclasses.dataclass
class Point:
    x: Any
    y: Any = 0


class Model(pydantic.BaseModel):
    name: str
    tags: set[str] = set()


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Text(str):
    __slots__ = ()


class Pair(collections.namedtuple("Pair", "a b")):
    __slots__ = ()


PLAIN = [
    None,
    True,
    7,
    10**40,
    1.5,
    math.inf,
    "text",
    "größe \N{SNOWMAN}",
    b"\x00\xff",
    [],
    [1, "a", None, [2.5, {"k": b"v"}]],
    {"a": 1, 2: "b", None: True, b"k": [1], 1.5: {}},
]


@pytest.mark.parametrize("value", PLAIN, ids=shown)
def test_exact_plain_types_are_not_copied(value: Any) -> None:
    assert to_plain(value, "x") is value


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ((1, (2, 3)), [1, [2, 3]]),
        ({7}, [7]),
        (frozenset("a"), ["a"]),
        (Pair(1, 2), [1, 2]),
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"abcd")[::2], b"ac"),
        (collections.OrderedDict(a=(1,)), {"a": [1]}),
        (types.MappingProxyType({"a": 1}), {"a": 1}),
        (collections.Counter("aa"), {"a": 2}),
        (Point(1, Point({2}, "a")), {"x": 1, "y": {"x": [2], "y": "a"}}),
        (Model(name="n", tags={"t"}), {"name": "n", "tags": ["t"]}),
        (Color.RED, "red"),
        (Level.HIGH, 3),
        (Text("t"), "t"),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (datetime.datetime(2026, 1, 2, 3, 4, 5), "2026-01-02T03:04:05"),
        (datetime.time(3, 4), "03:04:00"),
        (decimal.Decimal("1.50"), "1.50"),
        (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (pathlib.PurePosixPath("/a/b"), "/a/b"),
        (np.float64(1.5), 1.5),
        (np.int32(4), 4),
        (np.bool_(True), True),
        (np.str_("s"), "s"),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.array([1.5, math.inf]), [1.5, math.inf]),
        (np.array(5), 5),
        (np.datetime64("2026-01-02"), "2026-01-02"),
        ({Color.RED: 1, Level.HIGH: 2, Text("t"): 3}, {"red": 1, 3: 2, "t": 3}),
        ([1, (2,), 3], [1, [2], 3]),
    ],
    ids=shown,
)
def test_objects_with_a_plain_form_cross_as_it(value: Any, plain: Any) -> None:
    found = to_plain(value, "x")
    assert found == plain
    assert_plain(found)


def assert_plain(value: Any) -> None:
    assert type(value) in (type(None), bool, int, float, str, bytes, list, dict)
    if type(value) is list:
        for item in value:
            assert_plain(item)
    elif type(value) is dict:
        for key, item in value.items():
            assert type(key) in (type(None), bool, int, float, str, bytes)
            assert_plain(item)


def test_the_converted_value_leaves_the_original_as_it_was() -> None:
    original = {"a": [1, (2,), {"b": (3,)}]}
    to_plain(original, "x")
    assert original == {"a": [1, (2,), {"b": (3,)}]}


@pytest.mark.parametrize(
    ("value", "path", "type_name"),
    [
        (object(), "`inputs['v']` is an object", ""),
        (Point(Point(1j)), "`inputs['v'].x.x` is a complex", ""),
        ({"a": [0, 1, 2, {3: print}]}, "`inputs['v']['a'][3][3]` is a builtin", ""),
        ((1, [len]), "`inputs['v'][1][0]` is a builtin", ""),
        ({(1, 2): 3}, "`inputs['v']` has a key that is a tuple", ""),
        (array.array("i", [1]), "`inputs['v']` is an array.array", ""),
        (..., "`inputs['v']` is an ellipsis", ""),
        (compile("1", "", "eval"), "`inputs['v']` is a code", ""),
        (range(3), "`inputs['v']` is a range", ""),
        (datetime.timedelta(1), "`inputs['v']` is a datetime.timedelta", ""),
        (np.array([print]), "`inputs['v'][0]` is a builtin", ""),
    ],
    ids=lambda value: shown(value)[:20],
)
def test_what_cannot_cross_is_named_by_its_path(value: Any, path: str, type_name: str) -> None:
    with pytest.raises(isolet.TransferError) as caught:
        variables({"v": value})
    assert path in str(caught.value)


@pytest.mark.parametrize("value", ["a\ud800", ["ok", "\udfff"], {"\ud800": 1}, Text("\ud800")])
def test_lone_surrogates_cannot_cross(value: Any) -> None:
    with pytest.raises(isolet.TransferError, match="surrogate"):
        to_plain(value, "x")


def test_names_of_variables_are_strings() -> None:
    with pytest.raises(isolet.TransferError, match="the name 5"):
        variables({5: 1})  # type: ignore[dict-item]
    with pytest.raises(isolet.TransferError, match="surrogate"):
        variables({"\ud800": 1})


def nested(depth: int, make: Any) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = make(value)
    return value


@pytest.mark.parametrize(
    "make",
    [lambda v: [v], lambda v: {"k": v}, lambda v: (v,), Point],
    ids=["list", "dict", "tuple", "dataclass"],
)
def test_values_are_nested_up_to_the_limit(make: Any) -> None:
    to_plain(nested(MAX_DEPTH, make), "x")
    with pytest.raises(isolet.TransferError, match=f"deeper than {MAX_DEPTH}"):
        to_plain(nested(MAX_DEPTH + 1, make), "x")


def test_a_value_that_contains_itself_is_an_error() -> None:
    items: list[Any] = []
    items.append({"again": items})
    point = Point(1)
    point.x = point
    for value in (items, point):
        with pytest.raises(isolet.TransferError, match="`x` contains itself"):
            to_plain(value, "x")


def test_a_value_with_more_items_than_fit_ends_in_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("isolet._values.MAX_ITEMS", 1000)
    many: list[Any] = []
    for _ in range(60):
        many = [many, many]
    with pytest.raises(isolet.TransferError, match="more than 1000 items"):
        to_plain(many, "x")


def test_a_model_that_cannot_be_dumped_is_an_error() -> None:
    class Broken(pydantic.BaseModel):
        def model_dump(self, **_: Any) -> dict[str, Any]:
            raise ZeroDivisionError("broken")

    with pytest.raises(isolet.TransferError, match=r"model_dump.*broken"):
        to_plain(Broken(), "x")


@pytest.mark.parametrize("value", PLAIN, ids=shown)
def test_values_come_back_from_the_guest_as_they_were(session: isolet.Session, value: Any) -> None:
    session["v"] = value
    assert session["v"] == value
    assert session.eval("v") == value


def test_the_deepest_values_cross_and_deeper_ones_do_not(session: isolet.Session) -> None:
    session["v"] = nested(MAX_DEPTH, lambda v: [v])
    assert session.eval("d = 0\nwhile isinstance(v, list): v = v[0]; d += 1\nd") == MAX_DEPTH


def test_a_large_value_crosses_in_both_directions(session: isolet.Session) -> None:
    data = bytes(range(256)) * (12 << 12)
    assert session.run("data[::-1]", inputs={"data": data}).value == data[::-1]


def test_a_value_of_the_guest_that_cannot_cross_is_told_of(session: isolet.Session) -> None:
    execution = session.run("object()")
    assert execution.ok
    assert execution.value is None
    assert "object" in (execution.value_error or "")
    with pytest.raises(isolet.TransferError):
        session.eval("x = object(); x")
    with pytest.raises(isolet.TransferError):
        session["x"]
    assert "x" in session
