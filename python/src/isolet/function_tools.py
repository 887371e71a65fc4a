"""`tool_function` and `shell_function`: plain functions that run code, or commands of the shell.

They suit OpenAI Agents (`function_tool(run_python)`), LlamaIndex
(`FunctionTool.from_defaults(run_python)`), CrewAI (`tool(run_python)`), agno
(`Agent(tools=[run_python])`), and whatever else makes tools of a signature and a docstring.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, overload
from weakref import WeakKeyDictionary

from ._losses import loss
from .session import Session

if TYPE_CHECKING:
    from . import aio
    from .execution import Execution

_DOC = """Run Python code and return what it printed, and the value of its last expression.

Variables, functions and imports are kept from call to call. If the code fails, the traceback is
returned.

Args:
    code: The Python code to run.
"""
_SHELL_DOC = """Run commands in a shell of the sandbox, as bash does, and return their output.

The directory, variables and functions are kept from call to call.

Args:
    command: One or several commands.
"""
_LOST = "[the session has ended and a new one was started: variables and imports are lost]"


@overload
def tool_function(
    session: Session,
    *,
    name: str = "run_python",
    doc: str | None = None,
    timeout: float | None = None,
    max_chars: int = 20_000,
) -> Callable[[str], str]: ...
@overload
def tool_function(
    session: aio.Session,
    *,
    name: str = "run_python",
    doc: str | None = None,
    timeout: float | None = None,
    max_chars: int = 20_000,
) -> Callable[[str], Coroutine[Any, Any, str]]: ...
def tool_function(
    session: Session | aio.Session,
    *,
    name: str = "run_python",
    doc: str | None = None,
    timeout: float | None = None,
    max_chars: int = 20_000,
) -> Callable[[str], Any]:
    """Returns a function `run_python(code: str) -> str` that runs code in a session.

    What it returns is for a model: the output, the value, or the traceback. It never raises for
    what the code does. If a limit has ended the session, the next call starts it anew and says so.
    Calls wait for each other. For a session of `isolet.aio` it is a coroutine function.

    Args:
        session: the session, whose variables the function keeps.
        name: the name of the function.
        doc: its docstring, which the model reads. By default it says what the function does.
        timeout: the most seconds that a call may take, at most the limit `run_time`.
        max_chars: the most characters that it returns, 20,000 by default. The middle of longer
            texts is left out.
    """
    doc = _DOC if doc is None else doc
    if isinstance(session, Session):
        run = _plain(session, session.run, timeout, max_chars)

        def run_python(code: str) -> str:
            return run(code)

        return _named(run_python, name, doc)
    arun = _coroutine(session, session.run, timeout, max_chars)

    async def arun_python(code: str) -> str:
        return await arun(code)

    return _named(arun_python, name, doc)


@overload
def shell_function(
    session: Session,
    *,
    name: str = "run_shell",
    doc: str | None = None,
    timeout: float | None = None,
    max_chars: int = 20_000,
) -> Callable[[str], str]: ...
@overload
def shell_function(
    session: aio.Session,
    *,
    name: str = "run_shell",
    doc: str | None = None,
    timeout: float | None = None,
    max_chars: int = 20_000,
) -> Callable[[str], Coroutine[Any, Any, str]]: ...
def shell_function(
    session: Session | aio.Session,
    *,
    name: str = "run_shell",
    doc: str | None = None,
    timeout: float | None = None,
    max_chars: int = 20_000,
) -> Callable[[str], Any]:
    """Returns a function `run_shell(command: str) -> str` that runs commands in a session's shell.

    They work on the files that Python sees. What it returns is for a model: the output, and the
    status if it is not 0. In everything else it is as `isolet.function_tools.tool_function`, with
    which it takes turns.

    Args:
        session: the session, whose shell keeps its directory and variables.
        name: the name of the function.
        doc: its docstring, which the model reads. By default it says what the function does.
        timeout: the most seconds that a call may take, at most the limit `run_time`.
        max_chars: the most characters that it returns, 20,000 by default. The middle of longer
            texts is left out.
    """
    doc = _SHELL_DOC if doc is None else doc
    if isinstance(session, Session):
        run = _plain(session, session.sh, timeout, max_chars)

        def run_shell(command: str) -> str:
            return run(command)

        return _named(run_shell, name, doc)
    arun = _coroutine(session, session.sh, timeout, max_chars)

    async def arun_shell(command: str) -> str:
        return await arun(command)

    return _named(arun_shell, name, doc)


# The functions of a session take turns.
_locks: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def _named(function: Any, name: str, doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    # Frameworks evaluate annotations, and not all do so for texts.
    function.__annotations__ = dict.fromkeys(function.__annotations__, str)
    return function


def _plain(
    session: Session, start: Callable[..., Execution], timeout: float | None, max_chars: int
) -> Callable[[str], str]:
    lock = _locks.setdefault(session, threading.Lock())

    def run(code: str) -> str:
        with lock:
            if session.alive:
                return model_text(start(code, timeout=timeout), max_chars)
            session.reset()
            answer = model_text(start(code, timeout=timeout), max_chars)
            return f"{_LOST}\n{answer}"

    return run


def _coroutine(
    session: aio.Session,
    start: Callable[..., Coroutine[Any, Any, Execution]],
    timeout: float | None,
    max_chars: int,
) -> Callable[[str], Coroutine[Any, Any, str]]:
    import asyncio

    lock = _locks.setdefault(session, asyncio.Lock())

    async def run(code: str) -> str:
        async with lock:
            if session.alive:
                return model_text(await start(code, timeout=timeout), max_chars)
            await session.reset()
            answer = model_text(await start(code, timeout=timeout), max_chars)
            return f"{_LOST}\n{answer}"

    return run


def model_text(execution: Execution, max_chars: int) -> str:
    """Returns what a model sees of a run: its `text` and notes, and not many more characters."""
    text = execution.text
    if execution.ok and execution.value is None and execution.repr == "None":
        text = text.removesuffix("None").rstrip("\n")
    if execution.displays:
        kinds = ", ".join(sorted({kind for shown in execution.displays for kind in shown.data}))
        text = f"{text}\n[displayed: {kinds}]".lstrip("\n")
    text = text or "[no output]"
    if len(text) > max_chars:
        half = max_chars // 2
        left_out = len(text) - 2 * half
        text = f"{text[:half]}\n[{left_out} characters left out]\n{text[len(text) - half :]}"
    lost = loss(execution, "the session has ended: variables and imports are lost")
    return f"{text}\n[{lost}]" if lost else text
