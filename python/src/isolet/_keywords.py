"""Functions whose `**options` are the keywords of a `TypedDict` show each of them: in their
signature, which completes them, and in their docstring, for `help`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

Documented = TypeVar("Documented", bound=Callable[..., Any])

_ARGUMENTS = re.compile(r"^Args:\n((?:(?: .*)?\n)*)", re.MULTILINE)
_ENTRY = re.compile(r"^    (\**\w+): .*\n(?:^     .*\n)*", re.MULTILINE)


def shows(*kinds: Any, **defaults: Any) -> Callable[[Documented], Documented]:
    """Has a function or class show the keywords of these `TypedDict`s, with defaults but `None`."""

    def decorate(documented: Documented) -> Documented:
        function: Any = documented
        if inspect.isclass(function):
            function = function.__init__
        _show_in_signature(function, [each for kind in kinds for each in _keywords(kind, defaults)])
        if documented.__doc__:
            documented.__doc__ = _with_entries(documented.__doc__, kinds)
        return documented

    return decorate


def entries(kind: Any) -> dict[str, str]:
    """Returns what the docstring of a class says of each argument, in lines that are indented."""
    doc = inspect.cleandoc(kind.__doc__ or "") + "\n"
    found = _ARGUMENTS.search(doc)
    return {each[1]: each[0] for each in _ENTRY.finditer(found[1] if found else "")}


def _keywords(kind: Any, defaults: dict[str, Any]) -> Iterator[inspect.Parameter]:
    """Yields the keywords of a `TypedDict` as parameters."""
    for name, annotation in kind.__annotations__.items():
        shown = getattr(annotation, "__forward_arg__", annotation)
        default = defaults.get(name)
        yield inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=shown
        )


def _show_in_signature(function: Any, keywords: list[inspect.Parameter]) -> None:
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    function.__signature__ = signature.replace(parameters=[*own, *keywords])


def _with_entries(doc: str, kinds: tuple[Any, ...]) -> str:
    """Returns a docstring with the keywords after the entry of its `**options`."""
    clean = inspect.cleandoc(doc) + "\n"
    listed = "".join(entry for kind in kinds for entry in entries(kind).values())
    for each in _ENTRY.finditer(clean):
        if each[1].startswith("**"):
            return (clean[: each.end()] + listed + clean[each.end() :]).rstrip("\n")
    return doc
