"""A toolset for Pydantic AI: `Agent(..., toolsets=[isolet.pydantic_ai.CodeMode(tools)])`.

The model gets one tool, which runs Python. In that code, all tools of another toolset are
functions, so that it can chain and combine their results. Needs Pydantic AI 2.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, WrapperToolset
from pydantic_ai.toolsets.abstract import ToolsetTool
from pydantic_core import to_jsonable_python
from typing_extensions import TypedDict

from . import aio
from .function_tools import model_text
from .tools import Tool

_DESCRIPTION = """\
Run Python code in a sandbox, and get what it printed and the value of its last expression.
Variables and imports are kept from call to call."""
_FUNCTIONS = """
In the code these functions can be called, with arguments by name:
"""


class _Arguments(TypedDict):
    code: str


_CODE = TypeAdapter(_Arguments)


class CodeMode(WrapperToolset):
    """A toolset with one tool `run_python`, in whose code the tools of `wrapped` are functions.

    The functions are plain: `weather(city="Oslo")`. Tools get the run's context, and their
    arguments are validated. Code that fails is a retry for the model, with the traceback. Each run
    of the agent has a session of its own, unless one is given.

    Args:
        wrapped: the toolset, or functions. By default there are none.
        name: the name of the tool.
        session: the session, if runs are to share one. It belongs to the event loop of the runs.
        timeout: the most seconds that code may run, without those in tools; the limit `run_time`
            by default.
        max_chars: the most characters that the model sees, 20,000 by default. The middle of longer
            results is left out.
        **policy: what the code may do, as for `isolet.Sandbox`.
    """

    def __init__(
        self,
        wrapped: AbstractToolset | Sequence[Callable[..., Any]] = (),
        *,
        name: str = "run_python",
        session: aio.Session | None = None,
        timeout: float | None = None,
        max_chars: int = 20_000,
        **policy: Any,
    ) -> None:
        if session is not None and policy:
            raise TypeError(f"`session` has a policy, so {', '.join(policy)} cannot be given too")
        super().__init__(
            wrapped if isinstance(wrapped, AbstractToolset) else FunctionToolset(list(wrapped))
        )
        self._name = name
        self._shared = session
        self._timeout = timeout
        self._max_chars = max_chars
        self._sandbox = aio.Sandbox(**policy)
        self._session = session
        self._registered: dict[str, Any] = {}
        self._lock: asyncio.Lock | None = None

    @property
    def id(self) -> str | None:
        """The name of the tool."""
        return self._name

    async def for_run(self, ctx: RunContext[Any]) -> AbstractToolset:
        """Returns the toolset of a run of the agent, which opens a session of its own."""
        return self._with(await self.wrapped.for_run(ctx), keep=False)

    async def for_run_step(self, ctx: RunContext[Any]) -> AbstractToolset:
        """Returns the toolset of a step, with the session of the run."""
        wrapped = await self.wrapped.for_run_step(ctx)
        return self if wrapped is self.wrapped else self._with(wrapped, keep=True)

    def visit_and_replace(
        self, visitor: Callable[[AbstractToolset], AbstractToolset]
    ) -> AbstractToolset:
        """Returns this toolset with what the visitor makes of the wrapped one."""
        return self._with(self.wrapped.visit_and_replace(visitor), keep=True)

    async def __aexit__(self, *args: Any) -> bool | None:
        session, self._session = self._session, self._shared
        if session is not None and session is not self._shared:
            await session.close()
        self._registered = {}
        return await super().__aexit__(*args)

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool]:
        """Returns the one tool, whose description lists the functions."""
        inner = await self.wrapped.get_tools(ctx)
        description = _DESCRIPTION
        if inner:
            description += _FUNCTIONS + "\n".join(_shown(tool) for tool in inner.values())
        definition = ToolDefinition(
            name=self._name,
            description=description,
            parameters_json_schema={
                "type": "object",
                "properties": {"code": {"type": "string", "description": "The Python code."}},
                "required": ["code"],
                "additionalProperties": False,
            },
            # One session runs one code at a time.
            sequential=True,
        )
        validator: Any = _CODE.validator
        made = ToolsetTool(
            toolset=self, tool_def=definition, max_retries=5, args_validator=validator
        )
        return {self._name: made}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool
    ) -> Any:
        """Runs the code of a call, and returns what the model sees.

        Raises:
            ModelRetry: the code failed. Its text is the traceback.
        """
        if self._lock is None:
            self._lock = asyncio.Lock()
        async with self._lock:
            session = self._session
            if session is None or not session.alive:
                session = self._session = await self._sandbox.session()
            inner = await self.wrapped.get_tools(ctx)
            await session.register(*(self._function(each, ctx) for each in inner.values()))
            execution = await session.run(tool_args["code"], timeout=self._timeout)
        text = model_text(execution, self._max_chars)
        if not execution.ok:
            raise ModelRetry(text)
        return text

    def _function(self, tool: ToolsetTool, ctx: RunContext[Any]) -> Tool:
        name = tool.tool_def.name

        async def call(**arguments: Any) -> Any:
            valid = tool.args_validator.validate_python(arguments)
            try:
                value = await self.wrapped.call_tool(name, valid, ctx, tool)
            except ModelRetry as error:
                raise RuntimeError(error.message) from error
            return to_jsonable_python(value, fallback=str)

        call.__signature__ = _signature(tool.tool_def)  # type: ignore[attr-defined]
        return Tool(call, name=name, doc=tool.tool_def.description or "")

    def _with(self, wrapped: AbstractToolset, *, keep: bool) -> CodeMode:
        made: Any = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made.wrapped = wrapped
        if not keep:
            made._session = self._shared
            made._lock = None
        return made


def _signature(definition: ToolDefinition) -> inspect.Signature:
    """Returns parameters by name. What the schema does not require may be left out."""
    schema = definition.parameters_json_schema
    required = set(schema.get("required", ()))
    names = [name for name in schema.get("properties", {}) if name.isidentifier()]
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=inspect.Parameter.empty if name in required else ...,
        )
        for name in sorted(names, key=lambda name: name not in required)
    ]
    return inspect.Signature(parameters)


def _shown(tool: ToolsetTool) -> str:
    definition = tool.tool_def
    schema = definition.parameters_json_schema
    required = set(schema.get("required", ()))
    parameters = ", ".join(
        f"{name}: {_type(field)}{'' if name in required else ' = ...'}"
        for name, field in schema.get("properties", {}).items()
    )
    doc = " ".join((definition.description or "").split())
    return f"- {definition.name}({parameters}){': ' if doc else ''}{doc}"


def _type(schema: Any) -> str:
    names = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
    names.update({"array": "list", "object": "dict", "null": "None"})
    kind = schema.get("type") if isinstance(schema, dict) else None
    return names.get(kind, json.dumps(schema)) if isinstance(kind, str) else json.dumps(schema)
