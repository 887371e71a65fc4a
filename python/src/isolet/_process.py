"""The process of a server, and the pipes to it."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .errors import StartError

if TYPE_CHECKING:
    import subprocess

_PIPE_BYTES = 1 << 20

_orphans: list[subprocess.Popen[bytes]] = []
"""The processes that nobody waits for any more."""


class Process:
    """A server that was started. Its standard error is that of this process.

    `stdin` does not block, `stdout` does.
    """

    __slots__ = ("_popen", "pid", "stdin", "stdout")

    def __init__(self, command: Sequence[str], env: Mapping[str, str] | None) -> None:
        # It takes long to import.
        import subprocess

        _orphans[:] = [orphan for orphan in _orphans if orphan.poll() is None]
        input_, self.stdin = _pipe()
        try:
            self.stdout, output = _pipe()
        except OSError:
            os.close(input_)
            os.close(self.stdin)
            raise
        try:
            self._popen = subprocess.Popen(command, stdin=input_, stdout=output, env=env)
        except OSError as error:
            self.close_input()
            self.close_output()
            raise StartError(f"`{command[0]}` cannot be started: {error.strerror}") from error
        finally:
            os.close(input_)
            os.close(output)
        self.pid = self._popen.pid
        os.set_blocking(self.stdin, False)

    def close_input(self) -> None:
        """Closes the server's input: it then ends all sessions, and itself."""
        fd, self.stdin = self.stdin, -1
        _close(fd)

    def close_output(self) -> None:
        """Closes this end of the server's output. Nobody may be reading."""
        fd, self.stdout = self.stdout, -1
        _close(fd)

    def __del__(self) -> None:
        # A server without an input ends. The next one that starts asks whether it has.
        if hasattr(self, "stdout"):
            self.close_input()
            self.close_output()
        if hasattr(self, "_popen") and self._popen.returncode is None:
            _orphans.append(self._popen)

    def kill(self) -> None:
        """Ends the process at once."""
        self._popen.kill()

    def has_ended(self) -> bool:
        """Returns whether the process has ended."""
        return self._popen.poll() is not None

    def wait(self, seconds: float) -> bool:
        """Waits for the end of the process. Returns whether it has ended."""
        import subprocess

        try:
            self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def end(self, seconds: float) -> None:
        """Waits for the end of the process, and kills it after that time."""
        if not self.wait(seconds):
            self.kill()
            self._popen.wait()

    def forget(self) -> None:
        """Leaves the process alone: it is the child of another process than this."""
        self._popen.returncode = 0

    def how_it_ended(self) -> str:
        """Says with which status or by which signal the process has ended."""
        status = self._popen.returncode
        if status is None:
            return "closed its output"
        if status >= 0:
            return f"ended with exit status {status}"
        name = f"signal {-status}"
        with contextlib.suppress(ValueError):
            name = f"{name} ({signal.Signals(-status).name})"
        return f"was killed by {name}"


def _pipe() -> tuple[int, int]:
    """Makes a pipe of which no end is a standard stream of this process."""
    reader, writer = map(_above_streams, os.pipe())
    with contextlib.suppress(ImportError, AttributeError, OSError):
        import fcntl

        # A message of up to this size passes without a switch of processes.
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return reader, writer


def _above_streams(fd: int) -> int:
    """Moves a descriptor, if the program runs with its standard streams closed."""
    if fd > 2:
        return fd
    import fcntl

    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(fd)


def _close(fd: int) -> None:
    if fd >= 0:
        with contextlib.suppress(OSError):
            os.close(fd)
