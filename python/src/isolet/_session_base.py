"""What a session of the synchronous API has otherwise than one of the asynchronous API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _session
from ._handle import Handle
from ._values import text, to_plain
from .errors import TransferError
from .execution import Isolation

if TYPE_CHECKING:
    from ._core import Core


class SessionBase(Handle):
    """Has single variables as items. Any thread can use it."""

    def __init__(self, core: Core) -> None:
        """Use `Sandbox.session`."""
        self._core = core

    def __repr__(self) -> str:
        state = "alive" if self._core.is_alive else "ended"
        return f"<isolet.Session {self._core.number}, {state}>"

    def __getitem__(self, name: str) -> Any:
        found = self._core.ask("get", text(name, "name"))
        if not found:
            raise KeyError(name)
        return found[0]

    def __setitem__(self, name: str, value: Any) -> None:
        self._core.ask("set", {text(name, "name"): to_plain(value, name)})

    def __delitem__(self, name: str) -> None:
        if not self._core.ask("delete", text(name, "name")):
            raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        if type(name) is not str:
            return False
        try:
            return bool(self._core.ask("get", text(name, "name")))
        except TransferError:
            return True

    @property
    def isolation(self) -> Isolation:
        """Where the session runs, and what protects the host from it. Waits for its start."""
        self._core.check_opening()
        return _session.isolation(self._core.report)
