"""What adapters do about checkpoints: they keep what they set up, and tell what was lost."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from .errors import ConfigError

if TYPE_CHECKING:
    from .execution import Execution
    from .session import Session


def keep(session: Session) -> None:
    """Keeps what an adapter has set up, so that the session never goes on without it."""
    # The policy may say that there are no checkpoints, or there is too much to keep.
    with contextlib.suppress(ConfigError):
        session.checkpoint()


def loss(execution: Execution, ended: str) -> str:
    """Returns what the session has lost by a run: `ended` if that is all; may be empty."""
    if not execution.session_alive:
        return ended
    restored = execution.restored
    if restored is None:
        return ""
    if restored.lost_runs <= 1:
        return "The session goes on as it was before this run: what the run changed is lost."
    count = restored.lost_runs
    return f"The session goes on as it was before its last {count} runs: what they changed is lost."
