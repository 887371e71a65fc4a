"""An executor for smolagents: `CodeAgent(executor=isolet.smolagents.Executor(), ...)`.

Tools and managed agents stay on the host, with their state and secrets; only calls of them cross.
For agents that write no code there is a tool: `ShellTool(session)`. Needs smolagents 1.26.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import ast
import io
import itertools
import re
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from smolagents.local_python_executor import (
    CodeOutput,
    ExecutionTimeoutError,
    InterpreterError,
    PythonExecutor,
)
from smolagents.tools import Tool as AgentTool
from smolagents.utils import truncate_content

from ._losses import keep, loss
from ._sandbox import Sandbox
from ._values import to_plain
from .errors import SessionClosedError, TransferError
from .execution import Execution
from .function_tools import shell_function
from .tools import Submit, Tool

if TYPE_CHECKING:
    from typing_extensions import Self

    from .session import Session

_PRINTED_CHARS = 50_000
_MARK = "__isolet_smolagents__"
_FRAME = re.compile(r'^[ +|]*File "<cell>", line (\d+)', re.MULTILINE)
_TRACEBACK = re.compile(r"^(?:  \+ Exception Group )?Traceback \(most", re.MULTILINE)
# No frames of such a file are in tracebacks, so that those of the tools' wrappers are not.
_GUEST_NAME = "<isolet>/smolagents"
_FIELD = re.compile(r" \(`[^`]*`\)|, which follows from `[^`]*`")

_GUEST = '''
def _isolet_install(call, submit):
    import functools, io, sys, types

    class HostObject:
        """An object that stays on the host. Tools take it as the object itself."""

        def __init__(self, number, text):
            self._number, self._text = number, text

        def __repr__(self):
            return self._text

        def __getattr__(self, name):
            text = f"{self._text} is on the host: pass it to a tool. It has no {name!r} here"
            raise AttributeError(text)

    def pack(value):
        if isinstance(value, HostObject):
            return {MARK: "object", "number": value._number}
        if type(value).__module__.partition(".")[0] == "PIL" and hasattr(value, "save"):
            data = io.BytesIO()
            value.save(data, "PNG")
            return {MARK: "image", "data": data.getvalue()}
        if isinstance(value, (list, tuple)):
            return [pack(item) for item in value]
        if isinstance(value, dict):
            return {key: pack(item) for key, item in value.items()}
        return value

    def unpack(value):
        if isinstance(value, list):
            return [unpack(item) for item in value]
        if not isinstance(value, dict):
            return value
        kind = value.get(MARK)
        if kind == "image":
            try:
                import PIL.Image
            except ImportError:
                kind = "object"
            else:
                return PIL.Image.open(io.BytesIO(value["data"]))
        if kind == "object":
            return HostObject(value["number"], value["text"])
        return {key: unpack(item) for key, item in value.items()}

    def bind(tools, variables):
        for name, doc in tools.items():
            def tool(*args, _isolet_name=name, **kwargs):
                result = unpack(call(_isolet_name, pack(args), pack(kwargs)))
                if _isolet_name == "final_answer":
                    submit(None)
                return result
            tool.__name__ = tool.__qualname__ = name
            tool.__doc__ = doc
            globals()[name] = tool
        globals().update((name, unpack(value)) for name, value in variables.items())

    module = types.ModuleType("_isolet_smolagents")
    module.bind, module.pack = bind, pack
    sys.modules["_isolet_smolagents"] = module

_isolet_install(_isolet_call, _isolet_finish)
del _isolet_install, _isolet_call, _isolet_finish
'''.replace("MARK", repr(_MARK))
_BIND = "__import__('_isolet_smolagents').bind(_isolet_tools, _isolet_variables)\n"
_BIND += "del _isolet_tools, _isolet_variables"
_GET = "__import__('_isolet_smolagents').pack(globals()[_isolet_name])"


class StepTimeoutError(InterpreterError, ExecutionTimeoutError):
    """A step did not end in time: smolagents' own exception, and an error of the code."""


class Executor(PythonExecutor):
    """A `PythonExecutor` whose code runs in a session of isolet.

    Variables stay from step to step. Images of PIL cross in both directions, if the guest has the
    package `pillow`. What cannot cross otherwise stays on the host: the code gets an opaque object,
    which it can pass to other tools and to `final_answer`. The value of a step is that of a last
    expression or assignment; smolagents also takes that of a last `if` or loop.

    Args:
        additional_functions: further functions of the host that the code can call, by name.
        max_print_outputs_length: the most characters of output that the model sees, 50,000 by
            default.
        timeout: the most seconds that a step may take, without those in tools; the limit
            `run_time` by default.
        sandbox: the sandbox, if several executors are to share one.
        **policy: what the code may do, as for `isolet.Sandbox`: `Executor(packages=["numpy"])`.
            Name them in the agent's `additional_authorized_imports` too, which tells the model.
    """

    def __init__(
        self,
        additional_functions: Mapping[str, Callable[..., Any]] | None = None,
        max_print_outputs_length: int | None = None,
        *,
        timeout: float | None = None,
        sandbox: Sandbox | None = None,
        **policy: Any,
    ) -> None:
        if sandbox is not None and policy:
            raise TypeError(f"`sandbox` has a policy, so {', '.join(policy)} cannot be given too")
        self.additional_functions = dict(additional_functions or {})
        self.max_print_outputs_length = max_print_outputs_length or _PRINTED_CHARS
        self.timeout = timeout
        self.state: dict[str, Any] = _State(self)
        """The code's variables, and the output of the last step as `_print_outputs`."""
        self._sandbox = Sandbox(**policy) if sandbox is None else sandbox
        self._session: Session | None = None
        self._tools: dict[str, Callable[..., Any]] = dict(self.additional_functions)
        self._variables: dict[str, Any] = {}
        self._objects: dict[int, Any] = {}
        self._numbers = itertools.count(1)
        self._answer: list[Any] = []

    def send_tools(self, tools: dict[str, Any]) -> None:
        """Gives the code tools and managed agents, by name."""
        self._tools = {**tools, **self.additional_functions}
        if self._session is not None:
            self._bind(self._session, self._tools, {})

    def send_variables(self, variables: dict[str, Any]) -> None:
        """Sets variables of the code."""
        self._variables.update(variables)
        if self._session is not None and variables:
            self._bind(self._session, {}, variables)

    def __call__(self, code_action: str) -> CodeOutput:
        """Runs a step. The output is the value of its last statement, also of an assignment.

        Raises:
            InterpreterError: the code failed. Its text is for the model.
            StepTimeoutError: it did not end in time.
        """
        self.state["_print_outputs"] = ""
        session = self._open()
        self._answer.clear()
        try:
            execution = session.run(_with_last_value(code_action), timeout=self.timeout)
        except SessionClosedError as error:
            self._session = None
            raise InterpreterError(f"{error}. {_LOST}") from error
        printed = execution.stdout + execution.stderr
        logs = truncate_content(printed, max_length=self.max_print_outputs_length)
        self.state["_print_outputs"] = logs
        if not execution.session_alive:
            self._session = None
        if execution.status == "submitted":
            if self._answer:
                return CodeOutput(self._answer.pop(), logs, True)
            return CodeOutput(execution.value, logs, False)
        if execution.status == "timeout":
            raise StepTimeoutError(_timeout(execution))
        if execution.error is not None or not execution.ok:
            raise InterpreterError(_error(execution, code_action))
        return CodeOutput(_output(execution), logs, False)

    def cleanup(self) -> None:
        """Ends the session. A later step starts anew, with the tools and variables sent before."""
        session, self._session = self._session, None
        self._objects.clear()
        if session is not None:
            session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cleanup()

    def _open(self) -> Session:
        session = self._session
        if session is None or not session.alive:
            session = self._sandbox.session()
            session.register(Tool(self._call, name="_isolet_call"))
            session.set_submit(Submit({"answer": Any}, name="_isolet_finish"))
            session.run(_GUEST, name=_GUEST_NAME).raise_for_error()
            self._bind(session, self._tools, self._variables)
            self._session = session
        return session

    def _bind(
        self, session: Session, tools: Mapping[str, Any], variables: Mapping[str, Any]
    ) -> None:
        docs = {name: _documentation(tool) for name, tool in tools.items()}
        inputs = {"_isolet_tools": docs, "_isolet_variables": self._pack(dict(variables))}
        session.run(_BIND, inputs=inputs).raise_for_error()
        keep(session)

    def _call(self, name: str, args: list, kwargs: dict) -> Any:
        """Calls a tool for the guest."""
        tool = self._tools.get(name)
        if tool is None:
            raise NameError(f"name {name!r} is not defined")
        value = tool(*self._unpack(args), **self._unpack(kwargs))
        if name == "final_answer":
            self._answer[:] = [value]
            return None
        return self._pack(value)

    def _pack(self, value: Any) -> Any:
        try:
            return to_plain(value, "value")
        except TransferError:
            pass
        if type(value) is dict:
            return {key: self._pack(item) for key, item in value.items()}
        if type(value) in (list, tuple):
            return [self._pack(item) for item in value]
        number = next(self._numbers)
        self._objects[number] = value
        packed = {
            _MARK: "object",
            "number": number,
            "text": f"<{type(value).__name__} of the host>",
        }
        images = sys.modules.get("PIL.Image")
        if images is not None and isinstance(value, images.Image):
            data = io.BytesIO()
            raw = value.to_raw() if hasattr(value, "to_raw") else value
            raw.save(data, "PNG")
            packed.update({_MARK: "image", "data": data.getvalue()})
        return packed

    def _unpack(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._unpack(item) for item in value]
        if not isinstance(value, dict):
            return value
        kind = value.get(_MARK)
        if kind == "object":
            number = value.get("number")
            if number not in self._objects:
                raise ValueError(f"there is no object {number!r} of the host")
            return self._objects[number]
        if kind == "image":
            return _image(value["data"])
        return {key: self._unpack(item) for key, item in value.items()}

    def _has(self, name: object) -> bool:
        return self._session is not None and name in self._session

    def _get(self, name: str) -> Any:
        session = self._session
        if session is None or name not in session:
            raise KeyError(name)
        return self._unpack(session.eval(_GET, inputs={"_isolet_name": name}))


class ShellTool(AgentTool):
    """A tool for commands of a session's shell: `ToolCallingAgent([ShellTool(session)], ...)`.

    Code of an `Executor` needs none: it has the shell by `subprocess`.

    Args:
        session: the session, whose shell keeps its directory and variables.
        timeout: the most seconds that a call may take, at most the limit `run_time`.
        max_chars: the most characters of a result, 20,000 by default. The middle of longer ones is
            left out.
    """

    name = "shell"
    description = (
        "Runs commands in a shell of a sandbox, as bash does, and returns their output. The "
        "directory, variables and functions are kept from call to call."
    )
    inputs: ClassVar = {"command": {"type": "string", "description": "one or several commands"}}
    """What `forward` takes."""
    output_type = "string"

    def __init__(
        self, session: Session, *, timeout: float | None = None, max_chars: int = 20_000
    ) -> None:
        super().__init__()
        self._run = shell_function(session, timeout=timeout, max_chars=max_chars)

    def forward(self, command: str) -> str:
        """Runs commands."""
        return self._run(command)


class _State(dict):
    """What an agent and its user look up: `_print_outputs`, and the code's variables."""

    def __init__(self, executor: Executor) -> None:
        super().__init__(_print_outputs="")
        self._executor = executor

    def __missing__(self, name: str) -> Any:
        return self._executor._get(name)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or self._executor._has(name)

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default


_LOST = "The session was ended: its variables, functions and imports are lost."


def _documentation(tool: Any) -> str:
    doc = getattr(tool, "description", None) or getattr(tool, "__doc__", None)
    return doc if isinstance(doc, str) else ""


def _output(execution: Execution) -> Any:
    if execution.value_error is None:
        return execution.value
    for display in execution.displays:
        data = display.data.get("image/png") or display.data.get("image/jpeg")
        if display.is_result and isinstance(data, bytes):
            return _image(data)
    return execution.repr


def _image(data: bytes) -> Any:
    import PIL.Image

    return PIL.Image.open(io.BytesIO(data), formats=("PNG", "JPEG"))


def _error(execution: Execution, code: str) -> str:
    """Returns what smolagents' own executor would say, as far as it applies."""
    error = execution.error
    failure = _FIELD.sub("", execution.failure or "")
    if error is None:
        text = f"Code execution failed: {failure}"
    elif error.type in ("SyntaxError", "IndentationError", "TabError"):
        text = _syntax_error(error.type, error.message, error.args)
    else:
        where = _statement(code, error.traceback)
        text = f"Code execution failed at line '{where}' due to: {execution.failure}"
    return _with_loss(text, execution)


def _with_loss(text: str, execution: Execution) -> str:
    lost = loss(execution, _LOST)
    return f"{text}. {lost}" if lost else text


def _timeout(execution: Execution) -> str:
    reason = _FIELD.sub("", execution.failure or "")
    text = f"Code execution exceeded the maximum execution time: {reason}"
    return _with_loss(text, execution)


def _syntax_error(kind: str, message: str, args: list[Any] | None) -> str:
    try:
        details: Any = args
        _, (_, line, column, source, *_) = details
        return (
            f"Code parsing failed on line {line} due to: {kind}: {message}\n"
            f"{source}{' ' * (column - 1)}^"
        )
    except (TypeError, ValueError):
        return f"Code parsing failed due to: {kind}: {message}"


def _statement(code: str, traceback: str) -> str:
    """Returns the statement of the code itself in which an exception was raised."""
    # The first frame is that of the code: others may be of what earlier code has defined.
    last = [*_TRACEBACK.finditer(traceback)]
    frame = _FRAME.search(traceback, last[-1].start() if last else 0)
    if frame is None:
        return ""
    line = int(frame[1])
    for node in _body(code):
        if node.lineno <= line <= (node.end_lineno or 0):
            return ast.get_source_segment(code, node) or ""
    lines = code.splitlines()
    return lines[line - 1].strip() if line <= len(lines) else ""


def _with_last_value(code: str) -> str:
    """Returns the code with an expression for the value of a last assignment after it."""
    body = _body(code)
    last = body[-1] if body else None
    if isinstance(last, ast.Assign):
        target: ast.expr = last.targets[0]
    elif isinstance(last, ast.AugAssign) or (isinstance(last, ast.AnnAssign) and last.value):
        target = last.target
    else:
        return code
    if not all(isinstance(node, _PLAIN) for node in ast.walk(target)):
        # To look it up might do something.
        return code
    return f"{code}\n{ast.get_source_segment(code, target)}"


_PLAIN = (
    *(ast.Name, ast.Tuple, ast.List, ast.Attribute, ast.Subscript, ast.Constant),
    ast.expr_context,
)


def _body(code: str) -> list[ast.stmt]:
    try:
        return ast.parse(code).body
    except (SyntaxError, ValueError):
        # The guest's Python is newer than this one, or says what is wrong.
        return []
