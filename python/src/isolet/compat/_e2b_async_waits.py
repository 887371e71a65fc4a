"""How `_e2b_async` waits: `_e2b_sync_waits` has the same names for `_e2b_sync`."""

from __future__ import annotations

import asyncio
import inspect
import tempfile
from collections.abc import Callable
from typing import IO, Any

from . import _e2b_files

Lock = asyncio.Lock

Turn = asyncio.Lock
"""Held by the run of a context whose turn it is."""


async def call(callback: Callable[[Any], Any] | None, argument: object) -> None:
    """Calls a callback, which may be a coroutine function, unless there is nothing to tell."""
    if callback is None or argument is None:
        return
    done = callback(argument)
    if inspect.isawaitable(done):
        await done


async def contents(data: str | bytes | bytearray | IO[Any]) -> str | bytes:
    """Returns what is to be written. An open file is read by a thread."""
    if isinstance(data, (str, bytes, bytearray)):
        return _e2b_files.contents(data)
    return await asyncio.to_thread(_e2b_files.contents, data)


async def cleanup(directory: tempfile.TemporaryDirectory[str]) -> None:
    """Removes a directory, by a thread."""
    await asyncio.to_thread(directory.cleanup)
