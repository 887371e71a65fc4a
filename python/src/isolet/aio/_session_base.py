"""What a session of the asynchronous API has otherwise than one of the synchronous API."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from .. import _session
from .._handle import Handle
from .._values import text, to_plain
from ..errors import TransferError
from ..execution import Isolation

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._core import Core


class SessionBase(Handle):
    """Waits for the start, and has single variables as items. `await session` waits until it is
    open.
    """

    def __init__(self, core: Core) -> None:
        """Use `Sandbox.session`."""
        self._core = core

    def __repr__(self) -> str:
        state = "alive" if self._core.is_alive else "ended"
        return f"<isolet.aio.Session {self._core.number}, {state}>"

    def __await__(self) -> Generator[Any, None, Self]:
        yield from self._core.check_opening().__await__()
        return self

    async def contains(self, name: str) -> bool:
        """Returns whether there is a variable `name`. Works while code runs."""
        try:
            return bool(await self._core.ask("get", text(name, "name")))
        except TransferError:
            return True

    async def __getitem__(self, name: str) -> Any:
        """`await session["x"]` returns a variable."""
        found = await self._core.ask("get", text(name, "name"))
        if not found:
            raise KeyError(name)
        return found[0]

    def __setitem__(self, name: str, value: Any) -> None:
        """Sets a variable without waiting. What is done next with the session raises a failure.

        Raises:
            TransferError: the value cannot cross.
        """
        self._core.assign(text(name, "name"), to_plain(value, name))

    async def isolation(self) -> Isolation:
        """Returns where the session runs, and what protects the host from it."""
        await self._core.check_opening()
        return _session.isolation(self._core.report)
