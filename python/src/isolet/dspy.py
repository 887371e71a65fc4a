"""An interpreter for DSPy: `dspy.configure(interpreter_factory=isolet.dspy.Interpreter)`.

Every module of DSPy that runs code then runs it in a sandbox of isolet. Needs DSPy 3.4.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import inspect
import keyword
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pydantic_core
from dspy.primitives.code_interpreter import CodeExecutionError, CodeInterpreterError, FinalOutput
from dspy.utils.callback import with_callbacks

from ._loop import loop
from ._losses import loss
from ._sandbox import Sandbox
from ._values import to_plain
from .errors import BusyError, IsoletError, TransferError
from .execution import Execution
from .tools import Submit, Tool

if TYPE_CHECKING:
    from typing_extensions import Self

    from .session import Session

_KEPT_CHARS = 64 * 1024
"""Texts from this length on stay in the guest, and are bound again without being sent."""

_KEPT = "__import__('sys').modules['_isolet_kept'].names"
_KEEP = (
    "__import__('sys').modules.setdefault("
    "'_isolet_kept', __import__('types').SimpleNamespace(names={})).names"
)


class Interpreter:
    """A `dspy.CodeInterpreter` whose code runs in a session of isolet.

    It can be used by any thread, and keeps its variables until `shutdown`. Tools may be
    coroutine functions. Time in tools does not count as run time of the code.

    A run that was stopped, such as by the limit of its time, is a `CodeExecutionError` as long as
    the session goes on. Otherwise it is a `CodeInterpreterError`, and so is every later call.

    Args:
        tools: functions of the host that the code can call, by name. `tools` can be changed at any
            time: the next `execute` sees it.
        output_fields: the arguments of `SUBMIT`: dicts with a `name`, and perhaps a `type`.
        callbacks: handlers of DSPy for this instance.
        timeout: the most seconds that an `execute` may take, without those in tools; the limit
            `run_time` by default.
        sandbox: the sandbox, if several interpreters are to share one. Otherwise each has its own.
        **policy: what the code may do, as for `isolet.Sandbox`: `Interpreter(packages=["numpy"])`.
            As a factory: `functools.partial(isolet.dspy.Interpreter, packages=["numpy"])`.
    """

    execution_instructions = (
        "Python is full CPython with its standard library, in a sandbox. State persists across "
        "executions. Subprocesses and threads are unavailable. Files, the network and the "
        "environment of the host need permission; packages too. Top-level `await` works."
    )

    def __init__(
        self,
        tools: Mapping[str, Callable[..., Any]] | None = None,
        output_fields: list[dict[str, Any]] | None = None,
        callbacks: list[Any] | None = None,
        *,
        timeout: float | None = None,
        sandbox: Sandbox | None = None,
        **policy: Any,
    ) -> None:
        if sandbox is not None and policy:
            raise TypeError(f"`sandbox` has a policy, so {', '.join(policy)} cannot be given too")
        self.tools: dict[str, Callable[..., Any]] = dict(tools or {})
        self.output_fields = output_fields
        self.callbacks = list(callbacks or [])
        self.timeout = timeout
        self._sandbox = Sandbox(**policy) if sandbox is None else sandbox
        self._session: Session | None = None
        self._end: str | None = None
        # RLM sets it to `False` when it has changed the tools.
        self._tools_registered = False
        self._made: dict[str, _HostTool] = {}
        self._submit: list[str] | None = None
        self._kept: dict[str, str] = {}

    @with_callbacks
    def start(self) -> None:
        """Opens the session, and waits for it. Does nothing if it is open.

        Raises:
            CodeInterpreterError: it cannot be opened, or has ended.
        """
        self._check()
        if self._session is not None:
            return
        try:
            session = self._sandbox.session()
            session.isolation  # noqa: B018 - waits for the start
        except IsoletError as error:
            raise CodeInterpreterError(str(error)) from error
        self._session = session

    @with_callbacks
    def execute(self, code: str, variables: dict[str, Any] | None = None) -> Any:
        """Runs code, after it has set `variables`, by name.

        Returns:
            `FinalOutput` if the code called `SUBMIT`. Otherwise what it printed, or the value of
            its last expression; if there are both, a text of them. `None` if there is neither.

        Raises:
            SyntaxError: the code is no Python.
            CodeExecutionError: it raised an exception, exited, or was stopped. Its text has the
                form that `dspy.PythonInterpreter` gives it.
            CodeInterpreterError: a variable cannot be set, or the session has ended.
        """
        self._check()
        inputs = {name: _sent(name, value) for name, value in (variables or {}).items()}
        if self._session is None:
            self.start()
        session = self._session
        assert session is not None
        try:
            self._register(session)
            execution = session.run(
                code,
                inputs=self._bind_kept(session, inputs),
                timeout=self.timeout,
                syntax="command",
            )
        except BusyError as error:
            raise CodeInterpreterError(
                "the interpreter runs code already: it cannot execute recursively from one of its "
                "tools, nor from two threads at a time"
            ) from error
        except TransferError as error:
            raise CodeInterpreterError(str(error)) from error
        except IsoletError as error:
            if not session.alive:
                self._end = str(error)
            raise CodeInterpreterError(str(error)) from error
        if not execution.session_alive:
            self._end = execution.failure
        return self._result(execution)

    @with_callbacks
    def invoke_tool(self, tool_name: str, kwargs: dict[str, Any]) -> Any:
        """Calls the tool `tool_name`, as code does. `kwargs` has its arguments by parameter."""
        if tool_name not in self.tools:
            raise CodeInterpreterError(f"Unknown tool: {tool_name}")
        # The one that the code knows, as long as it has not been told of another one.
        made = self._made.get(tool_name) or _HostTool(self, tool_name, self.tools[tool_name])
        value = made.perform(kwargs)
        return _wait(value) if inspect.iscoroutine(value) else value

    @with_callbacks
    def shutdown(self) -> None:
        """Ends the session for good. Does nothing if it has ended."""
        if self._end is None:
            self._end = "it was shut down"
        if self._session is not None:
            self._session.close()

    def __call__(self, code: str, variables: dict[str, Any] | None = None) -> Any:
        return self.execute(code, variables)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def _check(self) -> None:
        if self._end is not None:
            raise CodeInterpreterError(
                f"the session has ended, make a new interpreter: {self._end}"
            )

    def _register(self, session: Session) -> None:
        """Makes `tools` and `output_fields` known to the guest, as far as they have changed."""
        is_stale = not self._tools_registered
        changed = [
            _HostTool(self, name, function)
            for name, function in self.tools.items()
            if is_stale or name not in self._made or self._made[name].function is not function
        ]
        if changed:
            session.register(*changed)
            self._made.update((made.name, made) for made in changed)
        names = [field["name"] for field in self.output_fields or [{"name": "output"}]]
        if is_stale or names != self._submit:
            # Without types: DSPy converts what does not fit, where a check would cost a step.
            session.set_submit(Submit(dict.fromkeys(names, Any)))
            self._submit = names
        self._tools_registered = True

    def _bind_kept(self, session: Session, inputs: dict[str, Any]) -> dict[str, Any]:
        """Binds long texts that the guest has kept. Returns what is to be sent.

        They are immutable, so that the guest can bind their names anew, but not change them.
        """
        rest: dict[str, Any] = {}
        bound: list[str] = []
        for name, value in inputs.items():
            if self._kept.get(name) is value:
                bound.append(f"{name} = {_KEPT}[{name!r}]")
            else:
                rest[name] = value
        fresh = {
            name: value
            for name, value in rest.items()
            if type(value) is str and len(value) >= _KEPT_CHARS
        }
        bound.extend(f"{_KEEP}[{name!r}] = {name}" for name in fresh)
        if not bound:
            return rest
        if not session.run("\n".join(bound), inputs=fresh).ok:
            self._kept.clear()
            return inputs
        self._kept.update(fresh)
        return {name: value for name, value in rest.items() if name not in fresh}

    def _result(self, execution: Execution) -> Any:
        if execution.status == "submitted":
            return FinalOutput(execution.value)
        error = execution.error
        if error is not None and error.type in ("SyntaxError", "IndentationError", "TabError"):
            raise SyntaxError(f"Invalid Python syntax. message: {error.message}")
        lost = loss(execution, "")
        if execution.status == "exited":
            exit_ = execution.system_exit
            kind, args = (exit_.type, exit_.args) if exit_ else ("SystemExit", None)
            text = f"{kind}: {[execution.exit_code] if args is None else args}"
            raise CodeExecutionError(f"{text}\n{lost}" if lost else text)
        if not execution.ok:
            text = execution.failure
            if error is not None:
                text = f"{error.type}: {error.args or error.message}"
            kind = CodeInterpreterError if self._end is not None else CodeExecutionError
            raise kind(f"{text}\n{lost}" if lost else text or "")
        if execution.value is None and execution.value_error is None:
            return execution.stdout or None
        if execution.stdout or execution.value_error is not None:
            return execution.stdout + _shown(execution)
        return execution.value


class _HostTool(Tool):
    """A tool whose calls go through `Interpreter.invoke_tool`, where DSPy's callbacks see them."""

    def __init__(self, interpreter: Interpreter, name: str, function: Callable[..., Any]) -> None:
        super().__init__(function, name=name)
        self._interpreter = interpreter
        # `invoke_tool` waits for coroutines, so that callbacks see their results.
        self.is_coroutine = False

    def call(self, arguments: dict[str, Any]) -> Any:
        return self._interpreter.invoke_tool(self.name, arguments)

    def perform(self, arguments: dict[str, Any]) -> Any:
        """Calls the function itself."""
        return super().call(arguments)

    def result(self, value: Any) -> Any:
        try:
            value = _with_named(value)
            return super().result(value)
        except (RecursionError, TransferError):
            pass
        try:
            return super().result(pydantic_core.to_jsonable_python(value))
        except (TransferError, ValueError):
            return super().result(str(value))


def _sent(name: str, value: Any) -> Any:
    if not name.isidentifier() or keyword.iskeyword(name):
        raise CodeInterpreterError(f"Invalid variable name: '{name}'")
    try:
        return to_plain(value, name)
    except TransferError as error:
        try:
            return to_plain(pydantic_core.to_jsonable_python(value), name)
        except (TransferError, ValueError):
            raise CodeInterpreterError(
                f"Unsupported value type: {type(value).__name__}: {error}"
            ) from None


def _with_named(value: Any) -> Any:
    """Returns it with a dict for each named tuple, as DSPy's own interpreter has them."""
    fields = getattr(value, "_asdict", None)
    if isinstance(value, tuple) and fields is not None:
        return _with_named(fields())
    if isinstance(value, (list, tuple)):
        return [_with_named(item) for item in value]
    if type(value) is dict:
        return {key: _with_named(item) for key, item in value.items()}
    return value


def _shown(execution: Execution) -> str:
    return repr(execution.value) if execution.repr is None else execution.repr


def _wait(coroutine: Any) -> Any:
    """Waits for a coroutine, which runs on the loop of this package.

    The caller's own loop, if it has one, is the thread that waits.
    """
    done: concurrent.futures.Future[Any] = concurrent.futures.Future()
    tasks: list[Any] = []

    async def main() -> None:
        try:
            done.set_result(await coroutine)
        except BaseException as error:
            done.set_exception(error)

    def begin() -> None:
        tasks.append(asyncio.ensure_future(main()))

    loop().call_soon_threadsafe(begin, context=contextvars.copy_context())
    try:
        return done.result()
    except BaseException:
        if tasks and not done.done():
            loop().call_soon_threadsafe(tasks[0].cancel)
        raise
