"""The interface of E2B's code interpreter: `from isolet.compat.e2b import Sandbox, AsyncSandbox`.

It needs no account and no package of E2B. `commands` are those of isolet's shell, and run one after
another. With `AsyncSandbox`, runs in one context wait for each other, callbacks may be coroutine
functions, and the cancellation of a task interrupts its code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._e2b_models import (
    CommandExitException,
    CommandResult,
    EntryInfo,
    Execution,
    ExecutionError,
    FileNotFoundException,
    InvalidArgumentException,
    Logs,
    NotFoundException,
    OutputMessage,
    Result,
    SandboxException,
    TimeoutException,
    WriteInfo,
)
from ._e2b_shared import Context
from ._e2b_sync import Commands, Filesystem, Sandbox

if TYPE_CHECKING:
    from ._e2b_async import AsyncCommands, AsyncFilesystem, AsyncSandbox

__all__ = [
    "AsyncCommands",
    "AsyncFilesystem",
    "AsyncSandbox",
    "CommandExitException",
    "CommandResult",
    "Commands",
    "Context",
    "EntryInfo",
    "Execution",
    "ExecutionError",
    "FileNotFoundException",
    "Filesystem",
    "InvalidArgumentException",
    "Logs",
    "NotFoundException",
    "OutputMessage",
    "Result",
    "Sandbox",
    "SandboxException",
    "TimeoutException",
    "WriteInfo",
]


def __getattr__(name: str) -> Any:
    if name in ("AsyncCommands", "AsyncFilesystem", "AsyncSandbox"):
        # asyncio takes long to import.
        from . import _e2b_async

        return getattr(_e2b_async, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
