"""Runs Python that nobody has reviewed: full CPython in a locked-down process.

>>> import isolet
>>> isolet.run("40 + 2").value
42
>>> with isolet.Sandbox(tools=[search]) as sandbox, sandbox.session() as session:
...     session.run("hits = search('cats')")
...     session.eval("len(hits)")
3

`isolet.aio` has the same names for asyncio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._server import Server
from .errors import (
    AssetsError,
    Busy,
    ConfigError,
    GuestError,
    GuestTimeout,
    Interrupted,
    IsoletError,
    LimitError,
    PackagesError,
    ProtocolError,
    ServerDied,
    SessionClosed,
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
    Truncated,
    Usage,
    Variable,
    WrittenFile,
)
from .policy import AuditEvent, Limits, Mount, Policy
from .session import Files, Session
from .streams import Runs, Stream
from .sync import Sandbox, run
from .tools import Submit, Tool, tool
from .version import __version__

if TYPE_CHECKING:
    from . import aio as aio

__all__ = [
    "AssetsError",
    "AuditEvent",
    "Busy",
    "ConfigError",
    "Display",
    "Execution",
    "FileEntry",
    "Files",
    "GuestError",
    "GuestException",
    "GuestTimeout",
    "Interrupted",
    "Isolation",
    "IsoletError",
    "LimitError",
    "Limits",
    "Mount",
    "Output",
    "Package",
    "PackagesError",
    "Policy",
    "ProtocolError",
    "Runs",
    "Sandbox",
    "Server",
    "ServerDied",
    "Session",
    "SessionClosed",
    "StartError",
    "Stream",
    "Submit",
    "Tool",
    "TransferError",
    "Truncated",
    "Usage",
    "Variable",
    "WrittenFile",
    "__version__",
    "aio",
    "run",
    "tool",
]


# What takes long to import: asyncio, and the frameworks of the adapters.
_LAZY = frozenset(
    ["adk", "ag2", "aio", "compat", "dspy", "fastmcp", "function_tools", "langchain", "openenv"]
    + ["pydantic_ai", "rlm", "smolagents"]
)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        return importlib.import_module(f"isolet.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
