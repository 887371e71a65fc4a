"""What adapters make of a script of the shell: the status and the notes that a process has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._losses import loss

if TYPE_CHECKING:
    from .execution import Execution

TIMED_OUT = 124
"""The status of a script that did not end in time, as that of `timeout`."""
_STATUSES = {"timeout": TIMED_OUT, "interrupted": 130, "raised": 1}
_KILLED = 137


def status(execution: Execution) -> int:
    """Returns the status of a script, also of one that did not come to its end."""
    if execution.exit_code is not None:
        return execution.exit_code
    return 0 if execution.ok else _STATUSES.get(execution.status, _KILLED)


def is_cut(execution: Execution) -> bool:
    """Returns whether output of the script was left out."""
    truncated = execution.truncated
    return bool(truncated.stdout_bytes or truncated.stderr_bytes)


def notes(execution: Execution) -> str:
    """Returns lines for the standard error: why isolet ended the script, and what was lost."""
    found = [] if execution.exit_code is not None else [execution.failure]
    found.append(loss(execution, "The session has ended: its files are lost."))
    return "".join(f"{note}\n" for note in found if note)


def with_notes(output: str, execution: Execution) -> str:
    """Returns an output with the notes in lines of their own after it."""
    added = notes(execution)
    return f"{output}\n{added}" if added and output and output[-1] != "\n" else output + added
