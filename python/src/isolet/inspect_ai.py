"""A sandbox for Inspect: `Task(..., sandbox="isolet")`, or `inspect eval --sandbox isolet`.

Each sample has a session, whose shell runs its commands without processes. Inspect finds the module
by the package's entry point. Needs Inspect 0.3.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import asyncio
import errno
import posixpath
from pathlib import Path
from typing import Any

import yaml
from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxEnvironmentLimits,
    SandboxUnavailableError,
    SandboxUserUnsupportedError,
    sandboxenv,
)
from inspect_ai.util import SandboxEnvironment as Base
from pydantic import BaseModel

from ._scripts import is_cut, status, with_notes
from .aio import Sandbox, Session
from .errors import ServerDiedError, SessionClosedError, TransferError
from .policy import Limits, Mount

_HOME = "/home/user"
_USERS = (None, "user", "1000")
_RUN = 'cd -- "$1" && shift && "$@"'
_INPUT = "/tmp/.isolet-input"
_NOT_EXECUTABLE = 126
_RUN_SECONDS = 3600


class Policy(BaseModel, frozen=True, extra="allow"):
    """What commands may do, for `SandboxEnvironmentSpec("isolet", Policy(...))`.

    It takes the keywords of `isolet.Sandbox` that are plain data, with dicts for limits and mounts:
    `Policy(packages=["numpy"], limits={"run_time": 60}, mounts={"/data": {"path": "data"}})`.
    Inspect writes it to its logs, so that it is no place for secrets.
    """

    # Inspect puts configurations into sets. Their hash is that of the declared fields: of none.


@sandboxenv(name="isolet")
class SandboxEnvironment(Base):
    """The sandbox of a sample: one session of isolet, in which commands take turns.

    A configuration is a `Policy`, or the path of a YAML file with the same keys, whose relative
    paths begin at the file. Without one, everything is denied, and a command may take an hour.
    `bash()` and `python()` work. Tools of Inspect that bring a program of their own do not, because
    there are no processes, nor does Inspect on trio.
    """

    def __init__(self, session: Session) -> None:
        """Use `sample_init`."""
        super().__init__()
        self._session = session
        self._lock = asyncio.Lock()

    @classmethod
    async def task_init(cls, task_name: str, config: BaseModel | str | None) -> None:
        """Reads the policy, so that a mistake in it ends the task before its samples."""
        Sandbox(**_policy(config))

    @classmethod
    async def sample_init(
        cls, task_name: str, config: BaseModel | str | None, metadata: dict[str, str]
    ) -> dict[str, Base]:
        """Opens the session of a sample."""
        async with Sandbox(**_policy(config)) as sandbox:
            session = sandbox.session()
            # What goes wrong with its start is raised here.
            await session.files.list(_HOME)
        return {"default": cls(session)}

    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,
        config: BaseModel | str | None,
        environments: dict[str, Base],
        interrupted: bool,
    ) -> None:
        """Ends the session of a sample."""
        for environment in environments.values():
            await environment.as_type(cls)._session.close()

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> BaseModel:
        """Returns the policy that a dict describes."""
        return Policy(**config)

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,  # noqa: A002
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """Runs a command with the session's shell.

        There is one user, `user` with the number 1000. A command that a limit other than that of
        its time has ended has the status 137, and its standard error says why. `timeout_retry` and
        `concurrency` change nothing: no command fails for the load of a machine far away, and none
        is a process.

        Raises:
            TimeoutError: it did not end in time.
            OutputLimitExceededError: it wrote too much.
            PermissionError: it is no program.
            SandboxUserUnsupportedError: it is to run as another user.
            SandboxUnavailableError: the session has ended.
        """
        if user not in _USERS:
            raise SandboxUserUnsupportedError(f"isolet has one user, `user`, and no {user!r}")
        script = _RUN if input is None else f"{_RUN} < {_INPUT}"
        argv = [posixpath.join(_HOME, cwd or ""), *cmd]
        try:
            async with self._lock:
                if input is not None:
                    # That is faster than a standard input, of which a command asks for pieces.
                    await self._session.files.put(_INPUT, input)
                execution = await self._session.sh(
                    script, program=True, argv=argv, inputs=env, timeout=timeout
                )
                if input is not None and self._session.alive:
                    await self._session.files.remove(_INPUT)
        except (ServerDiedError, SessionClosedError) as error:
            raise SandboxUnavailableError(str(error)) from error
        if execution.status == "timeout":
            raise TimeoutError(execution.failure)
        limit = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE
        longest = max(execution.stdout, execution.stderr, key=len)
        if is_cut(execution) or len(longest.encode()) > limit:
            text = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR
            raise OutputLimitExceededError(text, longest)
        code, stderr = status(execution), with_notes(execution.stderr, execution)
        if code == _NOT_EXECUTABLE and "permission denied" in stderr.lower():
            raise PermissionError(errno.EACCES, stderr.strip(), cmd[0])
        return ExecResult(code == 0, code, execution.stdout, stderr)

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Writes a file, and makes its directory.

        Raises:
            IsADirectoryError: it is a directory.
            PermissionError: it may not be written.
        """
        async with self._lock:
            await self._session.files.put(file, contents)

    async def read_file(self, file: str, text: bool = True) -> Any:
        """Reads a file: as UTF-8, or as bytes if `text` is false.

        Raises:
            FileNotFoundError: there is none.
            IsADirectoryError: it is a directory.
            PermissionError: it may not be read.
            UnicodeDecodeError: it is no text.
            OutputLimitExceededError: it is too large.
        """
        limit = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE
        too_large = OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None)
        try:
            async with self._lock:
                data = await self._session.files.get(file)
        except FileNotFoundError:
            # The shell has directories such as `/etc` that the guest's Python does not see.
            if (await self.exec(["test", "-d", file])).success:
                raise IsADirectoryError(errno.EISDIR, "is a directory", file) from None
            raise
        except TransferError:
            raise too_large from None
        if len(data) > limit:
            raise too_large
        return data.decode() if text else data


def _policy(config: BaseModel | str | None) -> dict[str, Any]:
    """Returns the keywords of a sandbox."""
    directory = Path()
    if isinstance(config, str):
        directory = Path(config).parent
        values = yaml.safe_load(Path(config).read_text(encoding="utf-8")) or {}
    else:
        values = config.model_dump() if config is not None else {}
    output = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE
    limits = {"run_time": _RUN_SECONDS, "stdout_bytes": output, "stderr_bytes": output}
    mounts = {}
    for guest, mount in values.get("mounts", {}).items():
        fields: dict[str, Any] = {"path": mount} if isinstance(mount, str) else dict(mount)
        mounts[guest] = Mount(directory / fields.pop("path"), **fields)
    wheels = [directory / path for path in values.get("wheels", ())]
    given = {**limits, **values.get("limits", {})}
    return {**values, "mounts": mounts, "wheels": wheels, "limits": Limits(**given)}
