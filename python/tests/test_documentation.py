"""The reference is in the docstrings: everything public has one, and it names each parameter."""

from __future__ import annotations

import ast
import doctest
import inspect
import pydoc
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import isolet
import isolet.aio
import isolet.node
from isolet.compat import e2b

SOURCE = Path(isolet.__file__).parent

EXPORTED = {
    "_node_files.py": isolet.node.__all__,
    "_node_session.py": isolet.node.__all__,
    "_run.py": isolet.__all__,
    "_sandbox.py": isolet.__all__,
    "_server.py": isolet.__all__,
    "errors.py": isolet.__all__,
    "execution.py": isolet.__all__,
    "journal.py": isolet.__all__,
    "node.py": isolet.node.__all__,
    "options.py": isolet.__all__,
    "policy.py": isolet.__all__,
    "session.py": isolet.__all__,
    "streams.py": isolet.__all__,
    "tools.py": isolet.__all__,
    "aio/__init__.py": isolet.aio.__all__,
    "aio/_sandbox.py": isolet.aio.__all__,
    "aio/_server.py": isolet.aio.__all__,
    "aio/session.py": isolet.aio.__all__,
    "aio/streams.py": isolet.aio.__all__,
    "compat/_e2b_async.py": e2b.__all__,
    "compat/_e2b_files.py": e2b.__all__,
    "compat/_e2b_models.py": e2b.__all__,
    "compat/_e2b_shared.py": e2b.__all__,
    "compat/_e2b_sync.py": e2b.__all__,
    "compat/e2b.py": e2b.__all__,
}
"""The names that each module has for users."""

ADAPTERS = {
    "adk.py": ["CodeExecutor"],
    "ag2.py": ["CodeEnvironment"],
    "deepagents.py": ["Backend"],
    "dspy.py": ["Interpreter"],
    "fastmcp.py": ["SandboxProvider"],
    "function_tools.py": ["shell_function", "tool_function"],
    "inspect_ai.py": ["Policy", "SandboxEnvironment"],
    "langchain.py": ["CodeInterpreterMiddleware", "ExecutionPolicy"],
    "openai_agents.py": ["ShellExecutor"],
    "openenv.py": ["PyExecutor", "install"],
    "pydantic_ai.py": ["CodeMode"],
    "ray.py": ["Node", "Pool", "key", "nodes", "start", "stop"],
    "rlm.py": ["REPL", "install"],
    "smolagents.py": ["Executor", "ShellTool"],
}
"""The same of the adapters. What their methods take is a matter of the framework that calls them,
which need not be installed here."""

REFERENCE = re.compile(r"\bas `(isolet\.[A-Za-z0-9_.]+)`")
"""Where a docstring leaves the parameters to that of another function."""


def test_every_module_is_looked_at():
    found = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("[!_]*.py")}
    private = {"version.py"}
    assert found - private == {name for name in (*EXPORTED, *ADAPTERS) if "/_" not in f"/{name}"}


@pytest.mark.parametrize("module", [*EXPORTED, *ADAPTERS])
def test_everything_public_is_documented(module: str):
    tree = ast.parse((SOURCE / module).read_text())
    assert ast.get_docstring(tree), f"{module} has no docstring"
    exported = {**EXPORTED, **ADAPTERS}[module]
    assert list(complaints(tree.body, exported, is_adapter=module in ADAPTERS)) == []


@pytest.mark.parametrize(
    "package", [isolet, isolet.aio, isolet.node, e2b], ids=lambda each: each.__name__
)
def test_each_exported_name_is_looked_at(package: ModuleType):
    modules = [module for module, exported in EXPORTED.items() if exported is package.__all__]
    defined = {
        name_of(node)
        for module in modules
        for node in ast.parse((SOURCE / module).read_text()).body
    }
    # A module, an alias of a type, and a text.
    assert set(package.__all__) - defined <= {"aio", "AuditEvent", "__version__"}


def test_the_names_for_asyncio_take_the_same_arguments():
    compared = 0
    for name in ("Files", "Sandbox", "Session", "Server"):
        other = getattr(isolet.aio, name)
        for method, function in inspect.getmembers(getattr(isolet, name), inspect.isfunction):
            if method.startswith("_"):
                continue
            here = inspect.signature(function).parameters.values()
            there = inspect.signature(getattr(other, method)).parameters.values()
            assert [(each.name, each.default, each.kind) for each in there] == [
                (each.name, each.default, each.kind) for each in here
            ], f"{name}.{method}"
            compared += 1
    assert compared > 20
    for name in ("replay", "resume", "run"):
        here = inspect.signature(getattr(isolet, name)).parameters
        assert list(here) == list(inspect.signature(getattr(isolet.aio, name)).parameters), name


def test_help_begins_with_what_one_needs_first():
    page = pydoc.plain(pydoc.render_doc(isolet)).splitlines()
    # What a terminal shows of it at once, or nearly so.
    first = " ".join(page[:50])
    adapters = [f"isolet.{module.removesuffix('.py')}" for module in ADAPTERS]
    modules = ["isolet.aio", "isolet.node", *adapters]
    for name in ["run", "Sandbox", "Session", "tool", "raise_for_error", *modules]:
        assert name in first, name


def test_the_first_examples_of_help_are_true():
    assert doctest.testmod(isolet) == (0, 5)


def complaints(
    body: list[ast.stmt], exported: list[str] | None, of_class: str = "", is_adapter: bool = False
) -> Iterator[str]:
    """Yields what is missing in a module or class.

    `exported` are the names that count, `None` for those without an underscore. `of_class` is the
    docstring of the class.
    """
    for at, node in enumerate(body):
        name = name_of(node)
        if name != "__init__" and (name not in exported if exported else name.startswith("_")):
            continue
        if isinstance(node, ast.ClassDef):
            doc = ast.get_docstring(node) or ""
            if not doc:
                yield f"{name} has no docstring"
            within = complaints(node.body, None, doc, is_adapter)
            yield from (f"{name}: {complaint}" for complaint in within)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from of_function(node, of_class, is_adapter)
        elif isinstance(node, ast.AnnAssign):
            following = body[at + 1] if at + 1 < len(body) else None
            if not is_text(following) and not names(of_class, name):
                yield f"{name} has no docstring"


def of_function(
    node: ast.FunctionDef | ast.AsyncFunctionDef, of_class: str, is_adapter: bool
) -> Iterator[str]:
    """Yields what is missing in a function or method."""
    if any(isinstance(each, ast.Name) and each.id == "overload" for each in node.decorator_list):
        return
    doc = ast.get_docstring(node) or ""
    if node.name == "__init__":
        if re.search(r"\bUse `\w", doc):
            return  # only the package itself calls it
        doc += f"\n{of_class}"
    if not doc:
        yield f"{node.name} has no docstring"
    if is_adapter and of_class and node.name != "__init__":
        return
    referred = REFERENCE.search(doc)
    if referred is not None:
        # The other one is public, so that its docstring is looked at, too.
        target: object = isolet
        for part in referred[1].split(".")[1:]:
            target = getattr(target, part)
        doc += f"\n{inspect.getdoc(target)}"
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    every += [each for each in (node.args.vararg, node.args.kwarg) if each is not None]
    for parameter in every:
        name = parameter.arg
        if name not in ("self", "cls") and not name.startswith("_") and not names(doc, name):
            yield f"{node.name} does not say what `{name}` is"


def name_of(node: ast.stmt) -> str:
    """Returns the name that a statement defines, or one that is private."""
    if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        return node.name
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    return "_"


def names(doc: str, name: str) -> bool:
    """Says whether a docstring has the name in backticks, or in its list of arguments."""
    listed = re.search(rf"^ *\**{name}: ", doc, re.MULTILINE)
    return listed is not None or re.search(rf"`[^`\n]*\b{name}\b[^`\n]*`", doc) is not None


def is_text(node: ast.stmt | None) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
