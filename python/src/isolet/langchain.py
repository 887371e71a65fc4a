"""A middleware for LangChain: `create_agent(..., middleware=[CodeInterpreterMiddleware()])`.

The model gets a tool that runs Python. In that code, further tools of the agent are functions.
Needs LangChain 1.4.
"""

# pyright: basic, reportMissingImports=false, reportInvalidTypeForm=false

# Without `from __future__ import annotations`: LangChain reads those of `run_python`.

import asyncio
import contextvars
import inspect
import threading
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Literal

from langchain.agents.middleware.types import AgentMiddleware, AgentState, PrivateStateAttr
from langchain.messages import SystemMessage
from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool, StructuredTool, tool
from typing_extensions import NotRequired

from ._sandbox import Sandbox
from .function_tools import tool_function
from .session import Session
from .tools import Tool

_DESCRIPTION = """\
Run Python code in a sandbox, and get what it printed and the value of its last expression.
Variables and imports are kept from call to call."""
_FUNCTIONS = (
    "In code for the tool `{name}` these functions can be called, with arguments by name. "
    "Combine several calls in one code where that saves steps.\n{functions}"
)
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
        self._sessions: OrderedDict[str, tuple[Session, Callable[[str], str]]] = OrderedDict()
        self._lock = threading.Lock()
        functions = "\n".join(_shown(each) for each in self._inner)
        self.system_prompt = _FUNCTIONS.format(name=name, functions=functions) if functions else ""

        def run_python(code: str, runtime: ToolRuntime) -> str:
            return self._run(code, runtime.state)

        async def arun_python(code: str, runtime: ToolRuntime) -> str:
            # Tools of the code run on this loop, which is free while a thread waits for the code.
            token = _loop.set(asyncio.get_running_loop())
            try:
                return await asyncio.to_thread(self._run, code, runtime.state)
            finally:
                _loop.reset(token)

        self.tools = [
            StructuredTool.from_function(
                run_python, arun_python, name=name, description=_DESCRIPTION
            )
        ]

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
                found[0].close(wait=False)

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
            sessions = [session for session, _ in self._sessions.values()]
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

    def _run(self, code: str, state: Any) -> str:
        return self._function(state.get("isolet_session") or uuid.uuid4().hex)(code)

    def _function(self, number: str) -> Callable[[str], str]:
        dropped: list[Session] = []
        with self._lock:
            found = self._sessions.pop(number, None)
            if found is None or not found[0].alive:
                session = self._sandbox.session()
                if self._inner:
                    session.register(*map(_host_tool, self._inner))
                found = (
                    session,
                    tool_function(session, timeout=self._timeout, max_chars=self._max_chars),
                )
            self._sessions[number] = found
            while len(self._sessions) > self._max_sessions:
                dropped.append(self._sessions.popitem(last=False)[1][0])
        for session in dropped:
            session.close(wait=False)
        return found[1]


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
