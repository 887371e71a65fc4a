"""Each keyword is in `help`, with its text, and in signatures, which complete it."""

from __future__ import annotations

import ast
import inspect
import pydoc
import re
from pathlib import Path
from typing import Any

import pytest

import isolet
from isolet import _keywords, aio, node

LISTS: list[tuple[Any, tuple[Any, ...]]] = [
    (isolet.Policy, (isolet.Policy,)),
    (isolet.Limits, (isolet.Limits,)),
    (isolet.Mount, (isolet.Mount,)),
    (isolet.Secret, (isolet.Secret,)),
    (isolet.RunOptions, (isolet.RunOptions,)),
    (isolet.StreamOptions, (isolet.StreamOptions,)),
    (isolet.OutputCallbacks, (isolet.OutputCallbacks,)),
    (isolet.Sandbox, (isolet.Policy,)),
    (aio.Sandbox, (isolet.Policy,)),
    (isolet.run, (isolet.RunOptions, isolet.Policy)),
    (isolet.resume, (isolet.Policy,)),
    (isolet.replay, (isolet.Policy,)),
    (isolet.Sandbox.run, (isolet.RunOptions,)),
    (aio.Sandbox.run, (isolet.RunOptions,)),
    (isolet.Session.run, (isolet.RunOptions,)),
    (isolet.Session.eval, (isolet.RunOptions,)),
    (isolet.Session.sh, (isolet.RunOptions,)),
    (isolet.Session.stream, (isolet.StreamOptions,)),
    (isolet.Session.go_on, (isolet.OutputCallbacks,)),
    (aio.Session.run, (isolet.RunOptions,)),
    (node.Client.session, (isolet.Policy,)),
    (node.Client.run, (isolet.Policy,)),
]


def names(kind: Any) -> list[str]:
    return [name for name in kind.__annotations__ if name != "_"]


def words(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def named(argument: Any) -> str:
    """Names a test: alike in each process that pytest runs beside others."""
    return getattr(argument, "__qualname__", "")


@pytest.mark.parametrize(("shown", "kinds"), LISTS, ids=named)
def test_help_has_each_keyword_with_its_text(shown: Any, kinds: tuple[Any, ...]) -> None:
    doc = words(inspect.getdoc(shown) or "")
    page = words(pydoc.plain(pydoc.render_doc(shown)).replace("|", ""))
    for kind in kinds:
        said = _keywords.entries(kind)
        assert list(said) == names(kind)
        for name, entry in said.items():
            assert len(entry.split()) > 3, name
            assert words(entry).strip() in doc, name
            assert words(entry).strip() in page, name


@pytest.mark.parametrize(
    ("shown", "kinds"), [each for each in LISTS if each[0] not in each[1]], ids=named
)
def test_signatures_have_each_keyword(shown: Any, kinds: tuple[Any, ...]) -> None:
    parameters = inspect.signature(shown).parameters
    assert not any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    for kind in kinds:
        for name in names(kind):
            assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY, name
            assert parameters[name].annotation != inspect.Parameter.empty, name


def test_every_function_with_keywords_shows_them() -> None:
    source = Path(isolet.__file__).parent
    for path in source.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            keywords = function.args.kwarg
            is_unpacked = keywords is not None and "Unpack" in ast.dump(keywords)
            decorated = "shows" in "".join(map(ast.dump, function.decorator_list))
            # That of a class is decorated with it.
            assert not is_unpacked or decorated or function.name == "__init__", function.name


def test_the_rules_that_the_keyword_for_the_network_names_are_rules() -> None:
    entry = _keywords.entries(isolet.Policy)["allow_net"]
    rules = [rule for rule in re.findall(r"`([^`]+)`", entry) if "/" not in rule]
    assert len(rules) == 4
    assert isolet.run("40 + 2", allow_net=rules).value == 42
