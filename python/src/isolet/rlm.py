"""An environment for rlm: `isolet.rlm.install()`, then `RLM(environment="local", ...)` as before.

Code of the model then runs in a sandbox, and not in the program. Needs rlms 0.1.3.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import ast
import copy
import time
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import rlm.core.rlm as _core
from rlm.core.types import REPLResult
from rlm.environments.base_env import extract_tool_value
from rlm.environments.local_repl import LocalREPL

from ._losses import keep, loss
from ._sandbox import Sandbox
from .errors import TransferError
from .execution import Variable
from .session import Session
from .tools import Tool

_GUEST = """
def _isolet_install():
    import sys, types
    scaffold = {}

    def show_vars():
        hidden = {"answer", "SHOW_VARS"}
        found = {
            name: type(value).__name__
            for name, value in globals().items()
            if not name.startswith("_") and name not in hidden and name not in scaffold
        }
        found.update((n, type(v).__name__) for n, v in scaffold.items() if not callable(v))
        if not found:
            return "No variables created yet. Use ```repl``` blocks to create variables."
        return f"Available variables: {found}"

    def keep(names):
        scaffold.update((name, globals()[name]) for name in names)

    def finish():
        answer = globals().get("answer")
        content = None
        if not isinstance(answer, dict):
            globals()["answer"] = {"content": "", "ready": False}
        elif answer.get("ready"):
            content = str(answer.get("content", ""))
            answer["ready"] = False
        globals().update(scaffold)
        return content

    show_vars.__name__ = show_vars.__qualname__ = "SHOW_VARS"
    module = types.ModuleType("_isolet_rlm")
    module.keep, module.finish = keep, finish
    sys.modules["_isolet_rlm"] = module
    globals()["SHOW_VARS"] = show_vars
    keep(["SHOW_VARS"])
    finish()

_isolet_install()
del _isolet_install
"""
_KEEP = "__import__('_isolet_rlm').keep(_isolet_names)\ndel _isolet_names"
_FINISH = "__import__('_isolet_rlm').finish()"


class REPL(LocalREPL):
    """rlm's `LocalREPL`, with the code in a session of isolet.

    The code has the same names: `context`, `answer`, `llm_query`, `rlm_query`, their batched
    forms, `SHOW_VARS` and custom tools, which run on the host.

    Args:
        sandbox: the sandbox; one without permissions by default.
        timeout: the most seconds that a block may run, without those in queries and tools; the
            limit `run_time` by default.
        **options: what rlm gives its environments.
    """

    _session: Session | None = None

    def __init__(
        self, *, sandbox: Sandbox | None = None, timeout: float | None = None, **options: Any
    ) -> None:
        self._sandbox = Sandbox() if sandbox is None else sandbox
        self._timeout = timeout
        super().__init__(**options)
        if self.compaction:
            self._bind({"history": []})

    def setup(self) -> None:
        """Opens the session."""
        # What the base class works with, and its users look at.
        self.globals: dict[str, Any] = {}
        self.locals: Any = _Variables(self)
        self._pending_llm_calls: list[Any] = []
        session = self._session = self._sandbox.session()
        tools = [
            Tool(self._llm_query, name="llm_query"),
            Tool(self._llm_query_batched, name="llm_query_batched"),
            Tool(self._rlm_query, name="rlm_query"),
            Tool(self._rlm_query_batched, name="rlm_query_batched"),
        ]
        values: dict[str, Any] = {}
        for name, entry in self.custom_tools.items():
            value = extract_tool_value(entry)
            if callable(value):
                tools.append(Tool(value, name=name))
            else:
                values[name] = value
        session.register(*tools)
        self.globals.update((tool.name, tool.function) for tool in tools)
        session.run(_GUEST).raise_for_error()
        session.set(values)
        session.run(
            _KEEP, inputs={"_isolet_names": [tool.name for tool in tools]}
        ).raise_for_error()
        keep(session)

    def add_context(self, context_payload: Any, context_index: int | None = None) -> int:
        """Sets `context_N`, and `context` if it is the first one."""
        index = self._context_count if context_index is None else context_index
        self._set(f"context_{index}", "context" if index == 0 else None, context_payload)
        self._context_count = max(self._context_count, index + 1)
        return index

    def add_history(
        self, message_history: list[dict[str, Any]], history_index: int | None = None
    ) -> int:
        """Sets `history_N`, and `history` if it is the first one."""
        index = self._history_count if history_index is None else history_index
        alias = "history" if index == 0 and not self.compaction else None
        self._set(f"history_{index}", alias, message_history)
        self._history_count = max(self._history_count, index + 1)
        return index

    def append_compaction_entry(self, entry: Any) -> None:
        """Adds to `history`."""
        if self.compaction:
            self._compaction_history.append(copy.deepcopy(entry))
            self._bind({"history": self._compaction_history})

    def execute_code(self, code: str) -> REPLResult:
        """Runs a block."""
        begun = time.perf_counter()
        self._pending_llm_calls = []
        session = self._session
        if session is None or not session.alive:
            raise RuntimeError("the session of the environment has ended, with its variables")
        execution = session.run(code, timeout=self._timeout)
        stderr = execution.stderr if execution.ok else f"{execution.stderr}\n{execution.failure}"
        lost = loss(execution, "")
        if lost:
            stderr += f"\n{lost}"
        answer, variables = None, {}
        if execution.session_alive:
            answer = session.run(_FINISH).value
            variables = {each.name: _value(each) for each in _own(session)}
        return REPLResult(
            stdout=execution.stdout,
            stderr=stderr,
            locals=variables,
            execution_time=time.perf_counter() - begun,
            rlm_calls=list(self._pending_llm_calls),
            final_answer=answer,
        )

    def cleanup(self) -> None:
        """Ends the session."""
        session, self._session = self._session, None
        if session is not None:
            session.close(wait=False)
        super().cleanup()

    def _set(self, name: str, alias: str | None, value: Any) -> None:
        assert self._session is not None
        self._session.set({name: value})
        if alias is None:
            keep(self._session)
        else:
            self._bind({alias: value})

    def _bind(self, values: dict[str, Any]) -> None:
        """Sets variables that code cannot bind otherwise for longer than a block."""
        assert self._session is not None
        inputs = {**values, "_isolet_names": list(values)}
        self._session.run(_KEEP, inputs=inputs).raise_for_error()
        keep(self._session)


_FUNCTIONS = ("function", "builtin_function_or_method", "module", "type")
_SIMPLE = ("str", "int", "float", "bool", "list", "dict", "tuple")
"""The types whose variables rlm tells the model of."""


def _own(session: Session) -> Iterator[Variable]:
    """Yields the variables of the code, without functions and modules."""
    for each in session.variables():
        if not each.name.startswith("_") and each.type not in _FUNCTIONS:
            yield each


def _value(variable: Variable) -> Any:
    """Returns a variable's value, as far as its text tells it. A long one is cut."""
    if variable.type not in _SIMPLE:
        return _Shown(variable.repr)
    try:
        return ast.literal_eval(variable.repr)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return variable.repr


class _Shown:
    """A value of the guest that is no plain data, which looks as it does there."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


class _Variables(MutableMapping):
    """`REPL.locals`: the code's variables, as plain data. What is none looks as in the guest."""

    def __init__(self, repl: REPL) -> None:
        self._repl = repl

    def __getitem__(self, name: str) -> Any:
        session = self._repl._session
        if session is None:
            raise KeyError(name)
        try:
            return session[name]
        except TransferError:
            found = (each for each in session.variables() if each.name == name)
            return next((_Shown(each.repr) for each in found), None)

    def __setitem__(self, name: str, value: Any) -> None:
        if self._repl._session is not None:
            self._repl._session[name] = value

    def __delitem__(self, name: str) -> None:
        if self._repl._session is None:
            raise KeyError(name)
        del self._repl._session[name]

    def __contains__(self, name: object) -> bool:
        session = self._repl._session
        return session is not None and name in session

    def __iter__(self) -> Iterator[str]:
        session = self._repl._session
        return iter([] if session is None else [each.name for each in _own(session)])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(dict(self))

    def copy(self) -> dict[str, Any]:
        return dict(self)


def install(
    *, sandbox: Sandbox | None = None, timeout: float | None = None, **policy: Any
) -> Callable[[], None]:
    """Makes `RLM(environment="local")` use `REPL`, in this program. Returns what undoes that.

    Args:
        sandbox: the sandbox; by default one of `policy`, for all environments.
        timeout: the most seconds that a block may run.
        **policy: what the code may do, as for `isolet.Sandbox`.
    """
    if sandbox is not None and policy:
        raise TypeError(f"`sandbox` has a policy, so {', '.join(policy)} cannot be given too")
    chosen = Sandbox(**policy) if sandbox is None else sandbox
    original = _core.get_environment

    def get_environment(environment: Any, environment_kwargs: dict[str, Any]) -> Any:
        if environment == "local":
            return REPL(sandbox=chosen, timeout=timeout, **environment_kwargs)
        return original(environment, environment_kwargs)

    def uninstall() -> None:
        if _core.get_environment is get_environment:
            _core.get_environment = original

    _core.get_environment = get_environment
    return uninstall
