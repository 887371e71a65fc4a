"""A middleware for LangChain: `create_agent(..., middleware=[CodeInterpreterMiddleware()])`.

The model gets a tool that runs Python. In that code, further tools of the agent are functions. With
`shell=True` it also gets one that runs commands. LangChain's own `ShellToolMiddleware` takes an
`ExecutionPolicy`. Needs LangChain 1.4.
"""

# pyright: basic, reportMissingImports=false, reportInvalidTypeForm=false

# Without `from __future__ import annotations`: LangChain reads those of `run_python`.

import asyncio
import contextvars
import inspect
import shlex
import subprocess
import threading
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from langchain.agents.middleware._execution import BaseExecutionPolicy
from langchain.agents.middleware.types import AgentMiddleware, AgentState, PrivateStateAttr
from langchain.messages import SystemMessage
from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool, StructuredTool, tool
from typing_extensions import NotRequired

from ._find import find_binary
from ._sandbox import Sandbox
from .function_tools import shell_function, tool_function
from .session import Session
from .tools import Tool

_DESCRIPTION = """\
Run Python code in a sandbox, and get what it printed and the value of its last expression.
Variables and imports are kept from call to call."""
_SHELL_DESCRIPTION = """\
Run commands in a shell of the sandbox, as bash does, and get their output. They work on the files
that `{name}` sees. The directory and variables are kept from call to call."""
_FUNCTIONS = (
    "In code for the tool `{name}` these functions can be called, with arguments by name. "
    "Combine several calls in one code where that saves steps.\n{functions}"
)
_WORKSPACE = "/workspace"
_READY = "isolet-is-ready"
_loop: contextvars.ContextVar[asyncio.AbstractEventLoop | None] = contextvars.ContextVar(
    "isolet_langchain_loop", default=None
)


class _State(AgentState):
    isolet_session: NotRequired[Annotated[str, PrivateStateAttr]]


class CodeInterpreterMiddleware(AgentMiddleware):
    """Gives an agent a tool that runs Python in a session of isolet.

    With `mode="thread"`, each thread of the agent has a session, which stays from turn to turn if
    the agent has a checkpointer. With `mode="turn"`, it ends with the turn.

    Args:
        tools: tools that the code can call as functions. The model does not see them otherwise,
            unless the agent has them too.
        name: the name of the tool.
        shell: whether the model also gets the tool `run_shell`, which runs commands in the shell of
            the same session.
        mode: how long variables stay: `thread` or `turn`.
        timeout: the most seconds that a call may take, without those in tools; the limit
            `run_time` by default.
        max_chars: the most characters of a result that the model sees, 20,000 by default. The
            middle of longer ones is left out.
        max_sessions: how many sessions are kept. The one that was not used for the longest time
            is ended first.
        sandbox: the sandbox, if several agents are to share one.
        **policy: what the code may do, as for `isolet.Sandbox`.
    """

    state_schema = _State

    def __init__(
        self,
        tools: Sequence[BaseTool | Callable[..., Any]] = (),
        *,
        name: str = "run_python",
        shell: bool = False,
        mode: Literal["thread", "turn"] = "thread",
        timeout: float | None = None,
        max_chars: int = 20_000,
        max_sessions: int = 64,
        sandbox: Sandbox | None = None,
        **policy: Any,
    ) -> None:
        super().__init__()
        if sandbox is not None and policy:
            raise TypeError(f"`sandbox` has a policy, so {', '.join(policy)} cannot be given too")
        self._mode = mode
        self._timeout = timeout
        self._max_chars = max_chars
        self._max_sessions = max_sessions
        self._sandbox = Sandbox(**policy) if sandbox is None else sandbox
        self._inner = [each if isinstance(each, BaseTool) else tool(each) for each in tools]
        self._sessions: OrderedDict[str, _Opened] = OrderedDict()
        self._lock = threading.Lock()
        functions = "\n".join(_shown(each) for each in self._inner)
        self.system_prompt = _FUNCTIONS.format(name=name, functions=functions) if functions else ""

        def run_python(code: str, runtime: ToolRuntime) -> str:
            return self._opened(runtime.state).run_python(code)

        async def arun_python(code: str, runtime: ToolRuntime) -> str:
            # Tools of the code run on this loop, which is free while a thread waits for the code.
            token = _loop.set(asyncio.get_running_loop())
            try:
                return await asyncio.to_thread(run_python, code, runtime)
            finally:
                _loop.reset(token)

        def run_shell(command: str, runtime: ToolRuntime) -> str:
            return self._opened(runtime.state).run_shell(command)

        async def arun_shell(command: str, runtime: ToolRuntime) -> str:
            token = _loop.set(asyncio.get_running_loop())
            try:
                return await asyncio.to_thread(run_shell, command, runtime)
            finally:
                _loop.reset(token)

        self.tools = [
            StructuredTool.from_function(
                run_python, arun_python, name=name, description=_DESCRIPTION
            )
        ]
        if shell:
            description = _SHELL_DESCRIPTION.format(name=name)
            self.tools.append(
                StructuredTool.from_function(
                    run_shell, arun_shell, name="run_shell", description=description
                )
            )

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Names the session of the turn."""
        if self._mode == "thread" and state.get("isolet_session"):
            return None
        return {"isolet_session": uuid.uuid4().hex}

    async def abefore_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Names the session of the turn."""
        return self.before_agent(state, runtime)

    def after_agent(self, state: Any, runtime: Any) -> None:
        """Ends the session of the turn, if it is not to stay."""
        if self._mode == "turn":
            with self._lock:
                found = self._sessions.pop(state.get("isolet_session", ""), None)
            if found is not None:
                found.session.close(wait=False)

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        """Ends the session of the turn, if it is not to stay."""
        self.after_agent(state, runtime)

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Tells the model of the functions."""
        return handler(self._told(request))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Tells the model of the functions."""
        return await handler(self._told(request))

    def close(self) -> None:
        """Ends all sessions."""
        with self._lock:
            sessions = [opened.session for opened in self._sessions.values()]
            self._sessions.clear()
        for session in sessions:
            session.close()

    def _told(self, request: Any) -> Any:
        if not self.system_prompt:
            return request
        blocks: list[Any] = []
        if request.system_message is not None:
            blocks.extend(request.system_message.content_blocks)
        text = f"\n\n{self.system_prompt}" if blocks else self.system_prompt
        blocks.append({"type": "text", "text": text})
        return request.override(system_message=SystemMessage(content=blocks))

    def _opened(self, state: Any) -> "_Opened":
        number = state.get("isolet_session") or uuid.uuid4().hex
        dropped: list[_Opened] = []
        with self._lock:
            found = self._sessions.pop(number, None)
            if found is None or not found.session.alive:
                session = self._sandbox.session()
                if self._inner:
                    session.register(*map(_host_tool, self._inner))
                found = _Opened(
                    session,
                    tool_function(session, timeout=self._timeout, max_chars=self._max_chars),
                    shell_function(session, timeout=self._timeout, max_chars=self._max_chars),
                )
            self._sessions[number] = found
            while len(self._sessions) > self._max_sessions:
                dropped.append(self._sessions.popitem(last=False)[1])
        for opened in dropped:
            opened.session.close(wait=False)
        return found


@dataclass(frozen=True)
class _Opened:
    session: Session
    run_python: Callable[[str], str]
    run_shell: Callable[[str], str]


@dataclass
class ExecutionPolicy(BaseExecutionPolicy):
    """Runs the shell of LangChain's own `ShellToolMiddleware` as `isolet sh`.

    The guest sees the workspace as `/workspace`, where the shell begins, and writes to it.
    LangChain ends a command after `command_timeout`, with the session.

    >>> ShellToolMiddleware("./work", execution_policy=ExecutionPolicy(options=["--with", "numpy"]))

    Args:
        command_timeout: as for LangChain's policies, and so are `startup_timeout`,
            `termination_timeout`, `max_output_lines` and `max_output_bytes`.
        options: options of `isolet sh`, which say what commands may do.
    """

    # Of LangChain's 10 s nothing comes: a busy shell reads no `exit`.
    termination_timeout: float = 1.0
    options: Sequence[str] = ()

    def spawn(
        self, *, workspace: Path, env: Mapping[str, str], command: Sequence[str]
    ) -> subprocess.Popen[str]:
        """Starts the shell. `command` is left out: there is one shell."""
        mount = f"{workspace.absolute()}:{_WORKSPACE}:rw"
        process = subprocess.Popen(
            [find_binary(), "sh", "--quiet", "--timeout=none", f"--mount={mount}", *self.options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            bufsize=1,
            start_new_session=True,
        )
        stdin: Any = process.stdin
        stderr: Any = process.stderr
        # Not as arguments, which other users of the host can read.
        exports = [f"export {name}={shlex.quote(value)}" for name, value in env.items()]
        stdin.write("\n".join([*exports, f"cd {_WORKSPACE}", f"echo {_READY} >&2", ""]))
        said: list[str] = []
        for line in stderr:
            if line.strip() == _READY:
                return process
            said.append(line)
        process.wait()
        raise RuntimeError(f"`isolet sh` did not start: {''.join(said).strip()}")


def _host_tool(inner: BaseTool) -> Tool:
    def call(**arguments: Any) -> Any:
        loop = _loop.get()
        if loop is not None:
            return asyncio.run_coroutine_threadsafe(inner.ainvoke(arguments), loop).result()
        return inner.invoke(arguments)

    schema: Any = inner.tool_call_schema
    required = set(schema.model_json_schema().get("required", ()))
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=inspect.Parameter.empty if name in required else ...,
        )
        for name in sorted(inner.args, key=lambda name: name not in required)
    ]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return Tool(call, name=inner.name, doc=inner.description)


def _shown(inner: BaseTool) -> str:
    schema: Any = inner.tool_call_schema
    required = set(schema.model_json_schema().get("required", ()))
    parameters = ", ".join(
        f"{name}: {schema.get('type', 'any')}{'' if name in required else ' = ...'}"
        for name, schema in inner.args.items()
    )
    return f"- {inner.name}({parameters}): {' '.join(inner.description.split())}"
