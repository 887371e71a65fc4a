"""An argument of another type is an error in Python's words, before anything reaches the server."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterable
from typing import Any

import pytest

import isolet
from isolet import aio, options, policy

OBJECT = object()

POLICIES: dict[str, tuple[Any, ...]] = {
    "tools": (5, "search", [5], {"f": 5}),
    "submit": (5, "answer", ["answer"]),
    "mounts": ("./data", 5, ["./data"], {"/data": 5}, {5: "./data"}),
    "allow_net": (True, "a.example", b"a.example", 5, [5]),
    "deny_net": (True, "a.example", 5, [5]),
    "allow_public_net": ("yes", 1, ["a.example"]),
    "headers": (
        "Bearer hidden",
        5,
        {"https://a.example": "hidden"},
        {"https://a.example": {"A": 5}},
    ),
    "secrets": ("hidden", ["hidden"], {"KEY": "hidden"}),
    "ca_files": ("ca.pem", 5, [5]),
    "env": ("A=hidden", ["A"], {"A": 5}, {5: "hidden"}),
    "allow_env": ("HOME", 5, [5]),
    "packages": ("numpy", 5, [5]),
    "allow_packages": ("numpy", 5, [5]),
    "preload": ("numpy", 5, [5]),
    "wheels": ("./wheels", 5, [5]),
    "bundle": ("no", 0),
    "offline": ("yes", 1),
    "limits": ({"run_time": 5}, 5, "5s"),
    "isolation": ("threads", 5, True),
    "require": ("seccomp", 5, [5]),
    "forkable": ("yes", True, 1.5, -1),
    "checkpoint": ("yes", 0),
    "seed": ("abc", 1.5, -1, 2**64, True),
    "start_time": ("2026-01-01", OBJECT, float("nan")),
    "on_audit": ("print", 5),
}
"""Values that each keyword of a policy cannot have."""

RUNS: dict[str, tuple[Any, ...]] = {
    "inputs": (5, "x=1", [1]),
    "timeout": ("abc", "1s", -1, float("nan"), True, [1]),
    "stdin": (5, ["x"]),
    "argv": ("--help", 5, [5]),
    "name": (5, b"x"),
    "working_directory": (5, True),
    "program": ("yes", 1),
    "keep_variables": ("yes", 1),
    "allow_return": ("yes", 1),
    "syntax": ("bash", 5),
    "table_data": ("yes", 1),
    "chart_pictures": ("yes", 1),
    "on_stdout": ("print", 5),
    "on_stderr": ("print", 5),
    "on_display": ("print", 5),
}
"""The same of those of a run."""


def cases(values: dict[str, tuple[Any, ...]]) -> list[Any]:
    return [
        pytest.param(name, value, id=f"{name}-{at}")
        for name, several in values.items()
        for at, value in enumerate(several)
    ]


def check(error: pytest.ExceptionInfo[isolet.ConfigError], name: str) -> None:
    said = str(error.value)
    assert name in said
    assert "has to be" in said or "cannot be called" in said, said
    for word in ("usize", "expected", "attribute", "NoneType", "hidden", "::"):
        assert word not in said, said


def test_every_keyword_is_in_a_table() -> None:
    assert list(policy.SHAPES) == list(isolet.Policy.__annotations__) == list(POLICIES)
    assert list(policy.LIMITS) == list(isolet.Limits.__dataclass_fields__)
    assert set(options.RUN) == set(isolet.RunOptions.__annotations__) == set(RUNS)
    assert set(options.STREAM) == set(isolet.StreamOptions.__annotations__)
    assert set(options.CALLBACKS) == set(isolet.OutputCallbacks.__annotations__)


@pytest.mark.parametrize(("name", "value"), cases(POLICIES))
def test_a_policy_names_the_keyword_and_what_it_has_to_be(name: str, value: Any) -> None:
    wrong: Any = {name: value}
    for make in (isolet.Sandbox, aio.Sandbox):
        with pytest.raises(isolet.ConfigError) as error:
            make(**wrong)
        check(error, "tool" if name == "tools" else name)


@pytest.mark.parametrize("name", list(policy.LIMITS))
def test_a_limit_names_itself_and_what_it_has_to_be(name: str) -> None:
    for value in ("5", "5s", -1, [5], True):
        wrong: Any = {name: value}
        with pytest.raises(isolet.ConfigError) as error:
            isolet.Limits(**wrong)
        check(error, f"Limits.{name}")
    assert getattr(isolet.Limits(**{name: 5}), name) == 5


@pytest.mark.parametrize(("name", "value"), cases(RUNS))
def test_a_run_names_the_keyword_and_what_it_has_to_be(
    name: str, value: Any, session: isolet.Session
) -> None:
    wrong: Any = {name: value}
    for run in (session.run, isolet.run, isolet.Sandbox().run):
        with pytest.raises(isolet.ConfigError) as error:
            run("1", **wrong)
        check(error, name)
    with pytest.raises(isolet.ConfigError) as error:
        asyncio.run(aio.run("1", **wrong))
    check(error, name)
    assert session.run("40 + 2").value == 42


def test_other_arguments_name_what_they_have_to_be(session: isolet.Session) -> None:
    anything: Any = session
    for call, name in (
        (lambda: anything.run(42), "code"),
        (lambda: isolet.run(b"1"), "code"),  # type: ignore[arg-type]
        (lambda: asyncio.run(aio.run(42)), "code"),  # type: ignore[arg-type]
        (lambda: anything.get(5), "name"),
        (lambda: anything.set(5), "values"),
        (lambda: anything.load_packages(["numpy"]), "load_packages('numpy', 'pandas')"),
        (lambda: isolet.Mount(5), "Mount.path"),  # type: ignore[arg-type]
        (lambda: isolet.Mount(".", mode="w"), "Mount.mode"),  # type: ignore[arg-type]
        (lambda: isolet.Mount(".", quota_bytes="1G"), "Mount.quota_bytes"),  # type: ignore[arg-type]
        (lambda: isolet.Secret(5, hosts=[]), "Secret.value"),  # type: ignore[arg-type]
    ):
        with pytest.raises(isolet.ConfigError) as error:
            call()
        check(error, name)


def test_a_hint_has_the_form_that_is_wanted() -> None:
    for wrong, form in (
        ({"mounts": "./data"}, "`mounts={'/data': './data'}`"),
        ({"allow_net": True}, "`allow_net=['example.com']`; `allow_public_net=True`"),
        ({"allow_net": "a.example"}, "`allow_net=['a.example']`"),
        ({"limits": {"run_time": 5}}, "`limits=isolet.Limits(run_time=5)`"),
    ):
        policy: Any = wrong
        with pytest.raises(isolet.ConfigError) as error:
            isolet.Sandbox(**policy)
        assert form in (error.value.hint or "")


def test_what_is_like_a_value_is_taken() -> None:
    import numpy

    limits = isolet.Limits(run_time=numpy.float32(5), memory_bytes=numpy.int64(1 << 28))
    found = isolet.run(
        "import sys; sys.argv[1:]",
        limits=limits,
        timeout=numpy.float64(3),
        argv=("a", "b"),
        allow_net=(name for name in ["a.example"]),
    )
    assert found.value == ["a", "b"]


def test_one_run_takes_what_a_run_in_a_session_takes() -> None:
    seen: list[str] = []
    options: Any = {"stdin": "typed\n", "argv": ["x"], "on_stdout": seen.append}
    code = "import sys; print(input(), sys.argv[1], y)"
    for result in (
        isolet.run(code, inputs={"y": 1}, **options),
        isolet.run(code, inputs={"y": 1}, env={"A": "b"}, **options),
        isolet.Sandbox().run(code, inputs={"y": 1}, **options),
        asyncio.run(aio.run(code, inputs={"y": 1}, **options)),
    ):
        assert result.stdout == "typed x 1\n"
    assert "".join(seen) == "typed x 1\n" * 4
    with pytest.raises(TypeError, match=r"`run` has no option 'stdn'; it .*, allow_net"):
        isolet.run(code, stdn="x")  # type: ignore[call-arg]


def warned(tools: Iterable[Any] | dict[str, Any]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        isolet.Sandbox(tools=tools)
        aio.Sandbox(tools=tools)
    return found


def test_a_tool_in_the_place_of_a_built_in_function_warns_where_it_is_given() -> None:
    def search(query: str) -> str:
        return query

    found = warned([len, search])
    assert [(each.category, each.filename) for each in found] == [(UserWarning, __file__)] * 2
    assert str(found[0].message).startswith("the tool `len` takes the place of Python's own `len`")
    assert warned([search]) == []
    # A name that was chosen is meant.
    assert warned([isolet.tool(search, name="len")]) == []
    assert warned({"len": search}) == []
    assert warned([isolet.tool(len, name="size")]) == []


def test_sessions_and_streams_show_what_they_are() -> None:
    with isolet.Sandbox().session() as session:
        assert repr(session) == f"<isolet.Session {session.id}, alive>"
        with session.stream("1") as stream:
            assert repr(stream) == f"<isolet.Stream of session {session.id}, running>"
            list(stream)
            assert repr(stream).endswith(", ended>")
    assert repr(session).endswith(", ended>")

    async def work() -> None:
        async with aio.Sandbox().session() as session:
            assert repr(session) == f"<isolet.aio.Session {session.id}, alive>"
            stream = session.stream("1")
            assert repr(stream).endswith(", not started>")
            async for _ in stream:
                pass
            assert repr(stream) == f"<isolet.aio.Stream of session {session.id}, ended>"

    asyncio.run(work())
