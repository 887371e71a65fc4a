"""The exceptions of this package. Only what is no `Exception` has a name without `Error`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ._inert import inert

if TYPE_CHECKING:
    from .execution import Execution


class IsoletError(Exception):
    """The host failed: nothing here says anything about the guest's code.

    Args:
        message: what happened.
        hint: what helps, if something is known to.
    """

    hint: str | None
    """What helps, or `None`. The text of the exception has it, too."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message} (hint: {self.hint})" if self.hint else message

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.args, self.hint)


class ConfigError(IsoletError):
    """An argument, a policy or a name is invalid."""


class AssetsError(IsoletError):
    """The files of the interpreter are missing or damaged."""


class StartError(IsoletError):
    """The server or an interpreter could not be started."""


class ServerDiedError(IsoletError):
    """The server or node has ended, and all of its sessions with it, or cannot be reached.

    The next session of a sandbox starts another server, that of a client goes to another node.
    """


class SessionClosedError(IsoletError):
    """The session has ended. Make a new one."""


class BusyError(IsoletError):
    """The session runs code already. Use one session for each run at a time."""


class LimitError(IsoletError):
    """A limit of the server was reached, such as that of open sessions or of a cell's code."""


class TransferError(IsoletError):
    """A value cannot cross between host and guest. The message names its path."""


class PackagesError(IsoletError):
    """A package could not be found, fetched, or loaded."""


class JournalError(IsoletError):
    """A journal cannot be read or written, or the session does something else than when it was
    recorded. The message names the file, and the session has ended.
    """


class ProtocolError(IsoletError):
    """The client and the server do not understand each other. The message names both versions."""


class GuestError(Exception):
    """The guest's code failed. Only `raise_for_error` and `eval` raise it.

    Its text is the last line of the guest's traceback, or why isolet ended the run, with
    `Execution.hint`. From Python 3.11 on, the traceback of the guest is a note.

    Args:
        execution: what the code did.
    """

    execution: Execution
    """What the code did, with the output so far."""

    def __init__(self, execution: Execution) -> None:
        super().__init__(execution)
        self.execution = execution
        error = execution.error
        if error is not None and error.traceback and sys.version_info >= (3, 11):
            self.add_note(inert(error.traceback.rstrip("\n")))

    def __str__(self) -> str:
        failure, hint = self.execution.failure or self.execution.status, self.execution.hint
        return inert(f"{failure} (hint: {hint})" if hint else failure)


class GuestTimeoutError(GuestError, TimeoutError):
    """The guest's code did not end in time."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C interrupted a run. A `KeyboardInterrupt`.

    Args:
        execution: how the run ended; `None` if nobody waited for that.
    """

    execution: Execution | None
    """How the run ended, with the output so far; `None` if nobody waited for that."""

    def __init__(self, execution: Execution | None = None) -> None:
        super().__init__("the run was interrupted")
        self.execution = execution


# Those of `docs/reference/protocol.md`, and the codes of problems of `docs/reference/http-api.md`.
_KINDS: dict[str, type[IsoletError]] = {
    "config": ConfigError,
    "assets": AssetsError,
    "start": StartError,
    "closed": SessionClosedError,
    "died": SessionClosedError,
    "busy": BusyError,
    "limit": LimitError,
    "value": TransferError,
    "packages": PackagesError,
    "journal": JournalError,
    "protocol": ProtocolError,
    "invalid": ConfigError,
    "unauthorized": ConfigError,
    "denied": ConfigError,
    "not_found": SessionClosedError,
    "gone": SessionClosedError,
    "no_route": ProtocolError,
    "quota": LimitError,
    "capacity": LimitError,
    "queue": LimitError,
    "draining": StartError,
    "restoring": StartError,
}


def from_wire(error: dict[str, Any]) -> IsoletError:
    """Returns the exception that an error of the server stands for."""
    kind = _KINDS.get(error.get("kind", ""), IsoletError)
    return kind(error.get("message", "the server failed"), error.get("hint"))
