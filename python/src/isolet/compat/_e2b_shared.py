"""What the sandboxes of `isolet.compat.e2b` share: their policy, contexts, and results of runs."""

from __future__ import annotations

import contextlib
import shlex
import time
import uuid
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from .. import execution as _execution
from ..errors import IsoletError
from ..policy import Limits, Mount
from ._e2b_files import HOME, absolute
from ._e2b_models import (
    CommandExitException,
    CommandResult,
    Execution,
    ExecutionError,
    InvalidArgumentException,
    Logs,
    OutputMessage,
    Result,
    TimeoutException,
    result_of,
)

_RUN_SECONDS = 300.0
ENTER = "__import__('os').chdir(_isolet_cwd)\ndel _isolet_cwd"
SET = """\
import os as _isolet_os
_isolet_old = {name: _isolet_os.environ.get(name) for name in _isolet_envs}
_isolet_os.environ.update(_isolet_envs)
"""
UNSET = """\
for _isolet_name, _isolet_value in _isolet_old.items():
    if _isolet_value is None:
        _isolet_os.environ.pop(_isolet_name, None)
    else:
        _isolet_os.environ[_isolet_name] = _isolet_value
del _isolet_os, _isolet_old, _isolet_envs, _isolet_name, _isolet_value
"""


@dataclass
class Context:
    """An interpreter of a sandbox, with variables of its own. `create_code_context` makes it."""

    id: str
    """Its name."""
    language: str
    """`python`."""
    cwd: str
    """The directory in which it starts."""


def default_context() -> Context:
    """Returns the context of code for which none is given."""
    return Context("default", "python", HOME)


def new_context(cwd: str | None) -> Context:
    """Returns a further context."""
    return Context(uuid.uuid4().hex, "python", cwd or HOME)


def policy_of(
    home: str,
    envs: dict[str, str] | None,
    allow_internet_access: bool,
    policy: dict[str, Any],
) -> dict[str, Any]:
    """Returns the policy of a sandbox whose files are in `home`."""
    policy = {"limits": Limits(run_time=_RUN_SECONDS), **policy}
    if envs:
        policy["env"] = {**policy.get("env", {}), **envs}
    if allow_internet_access:
        policy["allow_public_net"] = True
    policy["mounts"] = {HOME: Mount(home, mode="rw"), **policy.get("mounts", {})}
    return policy


@contextlib.contextmanager
def unless_killed(is_killed: Callable[[], bool]) -> Generator[None, None, None]:
    """Raises what E2B's clients do if the sandbox is killed meanwhile."""
    try:
        yield
    except IsoletError as error:
        if is_killed():
            raise TimeoutException(KILLED) from error
        raise


KILLED = "the sandbox was killed while the code ran"


class Cell:
    """A run under way: collects what it writes and displays."""

    def __init__(self) -> None:
        self._results: list[Result] = []
        self._pieces: dict[bool, list[str]] = {False: [], True: []}

    def written(self, text: str, is_error: bool) -> OutputMessage:
        """Adds a piece of output."""
        self._pieces[is_error].append(text)
        return OutputMessage(text, time.time_ns(), is_error)

    def displayed(self, display: _execution.Display) -> Result | None:
        """Adds a display, unless it is that of the last expression."""
        return None if display.is_result else self._add(result_of(display, None))

    def ended(self, execution: _execution.Execution) -> Result | None:
        """Adds the value of the last expression, if there is one.

        Raises:
            TimeoutException: the run took too long.
        """
        if execution.status == "timeout":
            raise TimeoutException(f"{execution.failure}: pass a longer `timeout` to `run_code`")
        main = main_result(execution)
        return None if main is None else self._add(main)

    def execution(self, error: ExecutionError | None, count: int) -> Execution:
        """Returns what the run did."""
        return Execution(self._results, Logs(self._pieces[False], self._pieces[True]), error, count)

    def _add(self, result: Result) -> Result:
        self._results.append(result)
        return result


def script_of(command: str, cwd: str | None, background: bool | None) -> str:
    """Returns the script that runs a command in a directory."""
    if background:
        raise InvalidArgumentException(
            "`background` is set, and commands of this sandbox run one after another; "
            "a node of `isolet serve --listen` runs them in the background, by E2B's own client"
        )
    return f"cd -- {shlex.quote(absolute(cwd or HOME))} || exit 1; {command}"


def command_result(execution: _execution.Execution, stdout: str, stderr: str) -> CommandResult:
    """Returns what a command did.

    Raises:
        TimeoutException: it took too long.
        CommandExitException: it ended with a status other than 0.
    """
    if execution.status == "timeout":
        raise TimeoutException(f"{execution.failure}: pass a longer `timeout` to `commands.run`")
    if execution.ok:
        return CommandResult(stderr, stdout, 0)
    is_status = execution.status == "exited" and execution.exit_code is not None
    code = execution.exit_code if is_status else 1
    raise CommandExitException(stderr, stdout, code or 1, None if is_status else execution.failure)


def check_arguments(language: str | None, context: Context | None) -> None:
    """Refuses what `run_code` cannot do."""
    if language and context:
        raise InvalidArgumentException("`language` and `context` cannot both be given")
    check_language(language)


def check_language(language: str | None) -> None:
    """Refuses every language but Python."""
    if language not in (None, "python"):
        raise InvalidArgumentException(f"the language is {language!r}, and isolet runs `python`")


def main_result(execution: _execution.Execution) -> Result | None:
    """Returns the value of the last expression, if there is one."""
    for display in execution.displays:
        if display.is_result:
            return result_of(display, execution.repr)
    if execution.value is None and execution.value_error is None:
        return None
    # The text of a text is the text itself, without quotes.
    is_quoted = type(execution.value) is str and (execution.repr or "")[:1] in ("'", '"')
    return Result(execution.value if is_quoted else execution.repr, is_main_result=True)


def error_of(execution: _execution.Execution) -> ExecutionError | None:
    """Returns why the code failed, if it did."""
    error = execution.error
    if error is not None:
        # Without the names of what the class is in.
        name = error.type.rpartition(".")[2]
        return ExecutionError(name, error.message, error.traceback)
    exit_ = execution.system_exit
    if exit_ is not None:
        # A mere `exit()` is no failure in IPython. Unlike `sys.exit()`, it raises SystemExit(None).
        if exit_.args == [None]:
            return None
        name = exit_.type.rpartition(".")[2]
        line = f"{name}: {exit_.message}" if exit_.message else name
        return ExecutionError(name, exit_.message, line)
    if execution.status == "exited":
        code = str(execution.exit_code)
        return ExecutionError("SystemExit", code, f"SystemExit: {code}")
    if not execution.ok:
        reason = execution.failure or execution.status
        return ExecutionError("ExecutionTerminated", reason, reason)
    return None
