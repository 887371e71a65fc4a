"""Where sessions are recorded: `Journal`."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from ._values import text

StrPath = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Journal:
    """The file that a session is recorded to, and how: `Journal("run.journal", sync=True)`.

    Where a function takes a journal, it takes the path alone, too. `docs/durable.md` says what is
    recorded. Only the file's owner may read it: it has what the guest was told.
    """

    path: StrPath
    """The file. A relative one is relative to the program's directory."""
    _: KW_ONLY
    sync: bool = False
    """Whether the journal survives the end of the machine, too, and not only that of every process.
    Each call of a tool then waits for the disk."""
    max_bytes: int | None = None
    """The most bytes of the file, 1 GiB by default.

    `when_full` says what happens past it."""
    when_full: Literal["end_session", "end_recording"] = "end_session"
    """What happens to a run that needs a larger file.

    * `"end_session"`: it is a `JournalError`, and its session ends. It can be resumed with a larger
      journal.
    * `"end_recording"`: the session goes on, and is recorded no longer. The file is emptied."""

    @classmethod
    def of(cls, journal: Journal | StrPath) -> Journal:
        """Returns the journal itself, or that of a path.

        Args:
            journal: a journal or a path.
        """
        return journal if isinstance(journal, Journal) else cls(journal)

    @property
    def absolute(self) -> str:
        """The path of the file. The server may have another working directory."""
        return text(os.path.abspath(self.path), "path")

    def to_wire(self) -> dict[str, Any]:
        """Returns it as `docs/reference/protocol.md` describes it."""
        wire: dict[str, Any] = {"path": self.absolute}
        if self.sync:
            wire["sync"] = "always"
        if self.max_bytes is not None:
            wire["max_bytes"] = self.max_bytes
        if self.when_full != "end_session":
            wire["when_full"] = self.when_full
        return wire
