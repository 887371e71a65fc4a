"""How `_e2b_sync` waits: `_e2b_async_waits` has the same names for `_e2b_async`."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Callable
from typing import Any

from ._e2b_files import contents

__all__ = ["Lock", "Turn", "call", "cleanup", "contents"]

Lock = threading.Lock

Turn = contextlib.nullcontext
"""A run does not wait for another one, which may be the one whose callback has started it."""


def call(callback: Callable[[Any], Any] | None, argument: object) -> None:
    """Calls a callback, unless there is nothing to tell."""
    if callback is not None and argument is not None:
        callback(argument)


def cleanup(directory: tempfile.TemporaryDirectory[str]) -> None:
    """Removes a directory."""
    directory.cleanup()
