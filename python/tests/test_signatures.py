"""What guests are told of a tool: its parameters, types, defaults and documentation."""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, NewType, Optional, TypedDict, Union

import pydantic
import pytest
from parameter_ids import shown

import isolet
from isolet import tool


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: int
    color: Color = Color.RED
    next: Point | None = None


class Model(pydantic.BaseModel):
    name: str
    points: list[Point] = []


class Shape(TypedDict):
    sides: int


UserId = NewType("UserId", int)


def parameters(function: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    wire = tool(function).to_wire()["parameters"]
    return {each.pop("name"): each for each in wire}


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (bytes, {"type": "bytes"}),
        (list, {"type": "array"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (
            list[list[str]],
            {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
        ),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (Iterable[str], {"type": "array", "items": {"type": "string"}}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (tuple[int, str], {"type": "array"}),
        (set[str], {"type": "array", "items": {"type": "string"}}),
        (dict, {"type": "object"}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Mapping[str, Any], {"type": "object"}),
        (dict[int, int], None),
        (Optional[str], {"anyOf": [{"type": "string"}, {"type": "null"}]}),  # noqa: UP045
        (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),  # noqa: UP007
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (int | Any, None),
        (Literal["a", 1, None], {"enum": ["a", 1, None]}),
        (Color, {"enum": ["red", "blue"]}),
        (Point, {"type": "object"}),
        (Model, {"type": "object"}),
        (Shape, {"type": "object"}),
        (list[Point], {"type": "array", "items": {"type": "object"}}),
        (UserId, {"type": "integer"}),
        (Any, None),
        (object, None),
        (Callable[[], int], None),
        ("no such name", None),
        (5, None),
        ({"type": "string"}, {"type": "string"}),
    ],
    ids=shown,
)
def test_annotations_become_schemas(annotation: Any, schema: Any) -> None:
    def function(value: Any) -> None: ...

    function.__annotations__["value"] = annotation
    assert parameters(function)["value"].get("schema") == schema


def test_signatures_are_read() -> None:
    marker = object()

    def search(
        query: str,
        /,
        limit: int = 10,
        *rest: int,
        exact: bool,
        color: Color = Color.RED,
        scale: Any = marker,
        tags: list[str] = [],  # noqa: B006
        pair: tuple[int, int] = (1, 2),
        **options: str,
    ) -> list[str]:
        """Searches.

        More text.
        """
        return []

    wire = tool(search).to_wire()
    assert wire == {
        "name": "search",
        "doc": "Searches.\n\nMore text.",
        "returns": {"type": "array", "items": {"type": "string"}},
        "parameters": [
            {"name": "query", "schema": {"type": "string"}, "kind": "positional_only"},
            {"name": "limit", "schema": {"type": "integer"}, "default": 10},
            {"name": "rest", "schema": {"type": "integer"}, "kind": "var_positional"},
            {"name": "exact", "schema": {"type": "boolean"}, "kind": "keyword_only"},
            {
                "name": "color",
                "schema": {"enum": ["red", "blue"]},
                "kind": "keyword_only",
                "optional": True,
            },
            {"name": "scale", "kind": "keyword_only", "optional": True},
            {
                "name": "tags",
                "schema": {"type": "array", "items": {"type": "string"}},
                "kind": "keyword_only",
                "default": [],
            },
            {"name": "pair", "schema": {"type": "array"}, "kind": "keyword_only", "optional": True},
            {"name": "options", "schema": {"type": "string"}, "kind": "var_keyword"},
        ],
    }


def test_one_annotation_that_cannot_be_resolved_leaves_the_others() -> None:
    def function(a: NoSuchName, b: int, c: list[NoSuchName]) -> NoSuchName: ...  # type: ignore # noqa: F821

    found = parameters(function)
    assert found == {"a": {}, "b": {"schema": {"type": "integer"}}, "c": {}}


def test_descriptions_of_parameters_are_read() -> None:
    def function(
        a: Annotated[str, "What to look for."],
        b: Annotated[int, pydantic.Field(description="How many.")] = 1,
    ) -> None: ...

    found = parameters(function)
    assert found["a"] == {"schema": {"type": "string"}, "doc": "What to look for."}
    assert found["b"]["doc"] == "How many."


class Service:
    """A service."""

    def method(self, x: int) -> int:
        """A method."""
        return x

    @classmethod
    def of(cls, x: int) -> int:
        return x

    @staticmethod
    def static(x: int) -> int:
        return x

    def __call__(self, x: int) -> int:
        return x


def plus(x: int, y: int = 1) -> int:
    """Adds."""
    return x + y


@pytest.mark.parametrize(
    ("function", "name", "doc", "names"),
    [
        (Service().method, "method", "A method.", ["x"]),
        (Service.of, "of", "", ["x"]),
        (Service.static, "static", "", ["x"]),
        (Service(), "Service", "A service.", ["x"]),
        (functools.partial(plus, 5), "plus", "Adds.", ["y"]),
        (functools.lru_cache(plus), "plus", "Adds.", ["x", "y"]),
        (tool(plus), "plus", "Adds.", ["x", "y"]),
        (Point, "Point", None, ["x", "color", "next"]),
        (len, "len", None, ["obj"]),
        (max, "max", None, ["args", "kwargs"]),
    ],
    ids=shown,
)
def test_anything_that_can_be_called_is_a_tool(
    function: Callable[..., Any], name: str, doc: str | None, names: list[str]
) -> None:
    made = tool(function)
    assert made.name == name
    assert doc is None or made.doc == doc
    assert list(parameters(function)) == names


def test_settings_are_passed_on() -> None:
    @tool(name="ask", doc="Asks.", style="async", timeout=3, max_calls=2, idempotent=True)
    async def ask_model(prompt: str) -> str:
        return prompt

    assert ask_model.name == "ask"
    assert ask_model.is_coroutine
    assert ask_model.to_wire() == {
        "name": "ask",
        "doc": "Asks.",
        "style": "async",
        "timeout": 3,
        "max_calls": 2,
        "idempotent": True,
        "returns": {"type": "string"},
        "parameters": [{"name": "prompt", "schema": {"type": "string"}}],
    }


def test_a_tool_can_be_called_by_the_host() -> None:
    made = tool(plus)
    assert made(1, y=2) == 3
    assert made.__name__ == "plus"
    assert repr(made) == "Tool('plus')"


@pytest.mark.parametrize(
    ("function", "arguments", "result"),
    [
        (lambda x, /, y=2, *z: (x, y, z), {"x": 1, "y": 5, "z": [6, 7]}, (1, 5, (6, 7))),
        (lambda x, /, y=2: (x, y), {"x": 1}, (1, 2)),
        (lambda *z, **k: (z, k), {"z": [1], "k": {"a": 2}}, ((1,), {"a": 2})),
        (lambda *z, **k: (z, k), {}, ((), {})),
        (lambda x, *, y: (x, y), {"x": 1, "y": 2}, (1, 2)),
        (lambda x, **k: (x, k), {"x": 1, "k": {"y": 2}}, (1, {"y": 2})),
    ],
)
def test_arguments_are_passed_as_the_function_takes_them(
    function: Callable[..., Any], arguments: dict[str, Any], result: Any
) -> None:
    assert tool(function, name="f").call(arguments) == result


def test_arguments_are_made_what_the_annotations_say() -> None:
    def function(
        color: Color,
        point: Point,
        model: Model,
        many: list[Point] | None,
        names: set[str],
        by_name: dict[str, Color],
        either: Color | str,
        pair: tuple[int, int] = (0, 0),
    ) -> Any:
        return [color, point, model, many, names, by_name, either, pair]

    found = tool(function).call(
        {
            "color": "blue",
            "point": {"x": 1, "color": "blue", "next": {"x": 2}},
            "model": {"name": "m", "points": [{"x": 3}]},
            "many": None,
            "names": ["a", "a"],
            "by_name": {"k": "red"},
            "either": "green",
            "pair": [1, 2],
        }
    )
    assert found == [
        Color.BLUE,
        Point(1, Color.BLUE, Point(2)),
        Model(name="m", points=[Point(3)]),
        None,
        {"a"},
        {"k": Color.RED},
        "green",
        (1, 2),
    ]


def test_an_argument_that_the_annotation_does_not_allow_is_an_error() -> None:
    def function(point: Point) -> None: ...

    with pytest.raises(TypeError):
        tool(function).call({"point": {"y": 1}})
    with pytest.raises(ValueError, match="green"):
        tool(function).call({"point": {"x": 1, "color": "green"}})


def test_a_submission_has_fields_of_types() -> None:
    submit = isolet.Submit({"answer": str, "score": float | None, "any": Any}, name="final_answer")
    assert submit.to_wire() == {
        "name": "final_answer",
        "fields": [
            {"name": "answer", "schema": {"type": "string"}},
            {"name": "score", "schema": {"anyOf": [{"type": "number"}, {"type": "null"}]}},
            {"name": "any"},
        ],
    }
