"""`isolet.run`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._sandbox import Sandbox
from ._server import Server
from .execution import Execution
from .options import Inputs
from .policy import Policy

if TYPE_CHECKING:
    from typing_extensions import Unpack


def run(
    code: str,
    *,
    inputs: Inputs | None = None,
    timeout: float | None = None,
    server: Server | None = None,
    **policy: Unpack[Policy],
) -> Execution:
    """Runs code in a fresh session, which ends with it.

    >>> isolet.run("40 + x", inputs={"x": 2}).value
    42

    Args:
        code: Python. The value of its last expression is the result's `value`.
        inputs: variables by name. They cross as plain data.
        timeout: the most seconds that the run may take, at most the limit `run_time`.
        server: the server; one for the whole program by default.
        **policy: what the code may do, as for `Sandbox`; see `Policy`. Without one: nothing but
            compute, for 30 seconds and in 1 GiB of memory.

    Returns:
        What the code did. It tells of exceptions and timeouts too: `raise_for_error` raises them.

    Raises:
        TransferError: an input cannot cross.
        IsoletError: the host failed.
        Interrupted: Ctrl-C was pressed.
    """
    if server is None and not policy:
        return _bare.run(code, inputs=inputs, timeout=timeout)
    # Nothing runs after it.
    policy.setdefault("checkpoint", False)
    with Sandbox(server=server, **policy) as sandbox:
        return sandbox.run(code, inputs=inputs, timeout=timeout)


# For runs without a policy.
_bare = Sandbox(checkpoint=False)
