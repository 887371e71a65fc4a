"""Runs Python that nobody has reviewed: full CPython in a locked-down process.

>>> import isolet
>>> isolet.run("40 + x", inputs={"x": 2}).value
42

The code may compute, and nothing else, unless a policy allows it. A session keeps its variables:

>>> def search(query: str) -> list[str]:
...     "Searches the corpus."
...     return [f"{query} 1", f"{query} 2"]
>>> sandbox = isolet.Sandbox(tools=[search], limits=isolet.Limits(run_time=5))
>>> with sandbox.session() as session:
...     session.run("hits = search('cats')").ok
...     session.eval("len(hits)")
...     session.run("open('/etc/passwd')").failure
...     session.run("while True: pass", timeout=0.5).status
True
2
"FileNotFoundError: [Errno 2] No such file or directory: '/etc/passwd'"
'timeout'

Where to look, by `help(isolet.NAME)`:

    run             one code in a fresh session
    resume, replay  a recorded run that goes on after the end of its process, or is looked back at
    Sandbox         a policy: Policy has its keywords, Limits, Mount and Secret belong to them
    Session         an interpreter: run, eval, stream, variables, files, interrupt, reset
    Execution       what a run did. A run never raises for that; raise_for_error() does
    tool, Submit    functions of this program that the code can call
    IsoletError     the base class of what the host raises, each with a `hint`
    isolet.aio      the same names for asyncio
    isolet.node     sessions on nodes, `isolet serve --listen`, over HTTP
    isolet.dspy, isolet.smolagents, isolet.fastmcp, isolet.pydantic_ai, isolet.langchain,
    isolet.deepagents, isolet.inspect_ai, isolet.openai_agents, isolet.adk, isolet.ag2,
    isolet.rlm, isolet.openenv, isolet.ray
                    adapters, each of which imports its framework
    isolet.function_tools
                    functions for models, for any other framework
    isolet.compat.e2b
                    the interface of E2B's code interpreter

Modules whose names begin with an underscore are internal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._run import replay, resume, run
from ._sandbox import Sandbox
from ._server import Server
from .errors import (
    AssetsError,
    BusyError,
    ConfigError,
    GuestError,
    GuestTimeoutError,
    Interrupted,
    IsoletError,
    JournalError,
    LimitError,
    PackagesError,
    ProtocolError,
    ServerDiedError,
    SessionClosedError,
    StartError,
    TransferError,
)
from .execution import (
    Display,
    Execution,
    FileEntry,
    GuestException,
    Isolation,
    Output,
    Package,
    Restored,
    StoppedAt,
    Truncated,
    Usage,
    Variable,
    WrittenFile,
)
from .journal import Journal
from .options import OutputCallbacks, RunOptions, StreamOptions
from .policy import AuditEvent, Limits, Mount, Policy, Secret
from .session import Files, Session
from .streams import Runs, Stream
from .tools import Submit, Tool, call_id, tool
from .version import __version__

if TYPE_CHECKING:
    from . import aio as aio

__all__ = [
    "AssetsError",
    "AuditEvent",
    "BusyError",
    "ConfigError",
    "Display",
    "Execution",
    "FileEntry",
    "Files",
    "GuestError",
    "GuestException",
    "GuestTimeoutError",
    "Interrupted",
    "Isolation",
    "IsoletError",
    "Journal",
    "JournalError",
    "LimitError",
    "Limits",
    "Mount",
    "Output",
    "OutputCallbacks",
    "Package",
    "PackagesError",
    "Policy",
    "ProtocolError",
    "Restored",
    "RunOptions",
    "Runs",
    "Sandbox",
    "Secret",
    "Server",
    "ServerDiedError",
    "Session",
    "SessionClosedError",
    "StartError",
    "StoppedAt",
    "Stream",
    "StreamOptions",
    "Submit",
    "Tool",
    "TransferError",
    "Truncated",
    "Usage",
    "Variable",
    "WrittenFile",
    "__version__",
    "aio",
    "call_id",
    "replay",
    "resume",
    "run",
    "tool",
]


# What takes long to import: asyncio, and the frameworks of the adapters.
_LAZY = frozenset(
    [
        "adk",
        "ag2",
        "aio",
        "compat",
        "deepagents",
        "dspy",
        "fastmcp",
        "function_tools",
        "inspect_ai",
        "langchain",
        "node",
        "openai_agents",
        "openenv",
        "pydantic_ai",
        "ray",
        "rlm",
        "smolagents",
    ]
)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        return importlib.import_module(f"isolet.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
