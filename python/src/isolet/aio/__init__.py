"""The names of `isolet` for asyncio: `await isolet.aio.run("40 + 2")`.

There are no threads: the running event loop reads what the server writes. Each loop has a server of
its own, which ends with it. `await sandbox.session()` waits until the session is open, and `async
with sandbox.session() as session` closes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..options import Inputs
from ..policy import Policy
from ._sandbox import Sandbox
from ._server import Server
from .session import Files, Session
from .streams import Runs, Stream

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..execution import Execution

__all__ = ["Files", "Runs", "Sandbox", "Server", "Session", "Stream", "run"]


async def run(
    code: str,
    *,
    inputs: Inputs | None = None,
    timeout: float | None = None,
    server: Server | None = None,
    **policy: Unpack[Policy],
) -> Execution:
    """Runs code in a fresh session, which ends with it: as `isolet.run`.

    >>> (await isolet.aio.run("40 + x", inputs={"x": 2})).value
    42

    Raises:
        TransferError: an input cannot cross.
        IsoletError: the host failed.
        CancelledError: the task was cancelled. The session has ended.
    """
    async with Sandbox(server=server, **policy) as sandbox:
        return await sandbox.run(code, inputs=inputs, timeout=timeout)
