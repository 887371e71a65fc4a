"""Executors for OpenEnv, `isolet.openenv.install()` before its environments are imported, and
environments without its server, `isolet.openenv.NodeProvider()`.

`PyExecutor`, which coding environments use, then runs code in a sandbox, and not in the server's
own process. `PythonExecutor` does so for the REPL environment, which is no part of the package:
`isolet.openenv.install(repl_env.server.repl_environment)`. `NodeProvider` starts a node of isolet
with a coding and a REPL environment of its own for OpenEnv's clients. Needs openenv 0.10.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from openenv.core.containers.runtime import RuntimeProvider
from openenv.core.env_server.types import CodeExecResult

from ._find import find_binary
from ._losses import keep, loss
from ._node_lines import address_in
from ._sandbox import Sandbox
from .errors import ConfigError, TransferError
from .tools import Tool

if TYPE_CHECKING:
    from .execution import Execution
    from .session import Session

_HELPERS = """\
from traceback import format_exc
def safe_json_dumps(obj):
    import json
    return json.dumps(obj, default=repr)
"""
# They are in the guest, so that they see values that cannot cross.
_FINAL_HELPERS = """\
def FINAL(value):
    return f"FINAL({value})"
def FINAL_VAR(var_name):
    name = str(var_name).strip().strip("\\"'")
    value = globals().get(name)
    return f"FINAL_VAR({name})" if value is None else FINAL(value)
"""
_HELPER_NAMES = ("format_exc", "safe_json_dumps")
_FINAL_NAMES = ("FINAL", "FINAL_VAR")
_REPR_CHARS = 500
_LOST = "The session has ended: variables and imports are lost."


class PyExecutor:
    """OpenEnv's `PyExecutor`, with the code in a session of isolet.

    Variables stay from run to run. If a limit has ended the session, the next run starts afresh,
    and the one that was ended says so.

    Args:
        additional_imports: ignored: code may import all of the standard library, and packages
            that the policy gives.
        timeout: the most seconds that a run may take; the limit `run_time` by default.
        sandbox: the sandbox; by default one of `policy`.
        **policy: what the code may do, as for `isolet.Sandbox`.
    """

    def __init__(
        self,
        additional_imports: Sequence[str] | None = None,
        *,
        timeout: float | None = None,
        sandbox: Sandbox | None = None,
        **policy: Any,
    ) -> None:
        self.timeout = timeout
        self._sandbox = _chosen(sandbox, policy)
        self._session: Session | None = None

    def run(self, code: str) -> CodeExecResult:
        """Runs code. The value of its last expression is written to the standard output."""
        session = self._session
        if session is None or not session.alive:
            session = self._session = self._sandbox.session()
            session.run(_HELPERS).raise_for_error()
            keep(session)
        execution = session.run(code, timeout=self.timeout, syntax="ipython")
        exit_code = execution.exit_code
        if exit_code is None:
            exit_code = 0 if execution.ok else 1
        return CodeExecResult(
            stdout=_stdout(execution), stderr=_stderr(execution), exit_code=exit_code
        )

    def close(self) -> None:
        """Ends the session. A later run starts a new one."""
        session, self._session = self._session, None
        if session is not None:
            session.close()


class PythonExecutor:
    """`PythonExecutor` of OpenEnv's REPL environment, with the code in a session of isolet.

    Variables stay from execution to execution. If a limit has ended the session, the next use
    starts afresh, with what the host has set and injected, and the execution that was ended says
    so. Unlike OpenEnv's it keeps the output of code that raises.

    Args:
        max_output_length: the most characters of the standard output, and of the standard error.
        allowed_imports: ignored: code may import all of the standard library, and packages that
            the policy gives.
        timeout: the most seconds that an execution may take, without those in injected functions;
            the limit `run_time` by default.
        sandbox: the sandbox; by default one of `policy`.
        **policy: what the code may do, as for `isolet.Sandbox`.
    """

    def __init__(
        self,
        max_output_length: int = 8192,
        allowed_imports: Sequence[str] | None = None,
        *,
        timeout: float | None = None,
        sandbox: Sandbox | None = None,
        **policy: Any,
    ) -> None:
        self.max_output_length = max_output_length
        self.timeout = timeout
        self._sandbox = _chosen(sandbox, policy)
        self._session: Session | None = None
        self._variables: dict[str, Any] = {}
        self._tools: dict[str, Tool] = {}
        # The names that were bound before.
        self._known: set[str] = set()

    def set_context(self, context: str, variable_name: str = "context") -> None:
        """Sets the variable with the context."""
        self.set_variable(variable_name, context)

    def set_variable(self, name: str, value: Any) -> None:
        """Sets a variable.

        Raises:
            TransferError: the value cannot cross.
        """
        session = self._open()
        session[name] = value
        keep(session)
        self._variables[name] = value

    def get_variable(self, name: str) -> Any:
        """Returns a variable, or `None` if there is none. Works while code runs.

        What cannot cross is its `repr`.
        """
        if name in self._tools or name in _HELPER_NAMES or name in _FINAL_NAMES:
            return None
        session = self._open()
        try:
            return session.get(name)
        except TransferError:
            found = (each.repr for each in session.variables() if each.name == name)
            return next(found, None)

    def list_variables(self) -> list[str]:
        """Returns the names of variables, and of what the host has set and injected."""
        names = {each.name for each in self._open().variables() if not each.name.startswith("_")}
        return sorted(names - {*_FINAL_NAMES} | {*_HELPER_NAMES, *self._variables, *self._tools})

    def inject_function(self, name: str, func: Callable[..., Any]) -> None:
        """Gives the code a function of the host.

        Those of the environment that only mark an answer run in the guest.
        """
        made = self._tools[name] = Tool(func, name=name)
        if not _marks(made):
            self._open().register(made)

    def execute(self, code: str) -> dict[str, Any]:
        """Runs code. Returns `stdout`, `stderr`, `locals_snapshot` and so on.

        The value of the last expression is written to the standard output, as JSON if it can be.
        """
        execution = self._open().run(code, timeout=self.timeout, syntax="ipython")
        exception = _exception(execution)
        bound = {
            name: shown if len(shown) <= _REPR_CHARS else f"{shown[:_REPR_CHARS]}..."
            for name, shown in execution.locals.items()
            if not name.startswith("_") and name not in self._known
        }
        self._known.update(bound)
        stderr = "\n".join(part for part in (execution.stderr, exception) if part)
        return {
            "stdout": self._cut(_stdout(execution)),
            "stderr": self._cut(stderr),
            "locals_snapshot": bound,
            "execution_time": execution.usage.wall_time,
            "success": exception is None,
            "exception": exception,
        }

    def reset(self) -> None:
        """Starts afresh, without variables and injected functions."""
        self.close()
        self._variables.clear()
        self._tools.clear()

    def close(self) -> None:
        """Ends the session. A later use starts a new one."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _open(self) -> Session:
        session = self._session
        if session is not None and session.alive:
            return session
        session = self._session = self._sandbox.session(inputs=self._variables)
        session.run(_HELPERS + _FINAL_HELPERS).raise_for_error()
        session.register(*(each for each in self._tools.values() if not _marks(each)))
        keep(session)
        self._known = {*_HELPER_NAMES, *_FINAL_NAMES, *self._variables, *self._tools}
        return session

    def _cut(self, text: str) -> str:
        if len(text) <= self.max_output_length:
            return text
        return f"{text[: self.max_output_length]}\n... (truncated, total {len(text)} chars)"


ENVIRONMENTS = ("coding", "repl")
"""The environments that a node has."""

_ENDING = 15.0
"""How long a node may take to end, in seconds."""


class NodeProvider(RuntimeProvider):
    """A provider for OpenEnv's clients that starts a node of isolet: `isolet serve --listen`.

    The node listens at the loopback, and ends with this process at the latest.

        client = GenericEnvClient(provider=isolet.openenv.NodeProvider("coding"))

    Args:
        environment: which of the node's environments it is for: `coding` or `repl`.
        *options: further options of the command, such as `"--max-sessions", "100"`.

    Raises:
        ConfigError: there is no such environment.
    """

    def __init__(self, environment: str = "coding", *options: str) -> None:
        if environment not in ENVIRONMENTS:
            names = " and ".join(f"`{name}`" for name in ENVIRONMENTS)
            raise ConfigError(f"a node has no environment `{environment}`; there are {names}")
        self._environment = environment
        self._options = options
        self._node: subprocess.Popen[str] | None = None
        self._base_url: str | None = None

    def start(
        self, port: int | None = None, env_vars: dict[str, str] | None = None, **kwargs: Any
    ) -> str:
        """Starts the node. Returns the URL of its environment.

        Args:
            port: where it listens; a free one by default.
            env_vars: variables of its own environment, which no code sees.

        Raises:
            RuntimeError: it runs already, or does not start.
        """
        if kwargs:
            raise TypeError(f"a node takes no option `{next(iter(kwargs))}`; see `isolet serve -h`")
        if self._node is not None and self._node.poll() is None:
            raise RuntimeError("the node runs already; `stop` it before another start")
        listen = ["--listen", f"127.0.0.1:{port or 0}", "--die-with-parent"]
        node = self._node = subprocess.Popen(
            [find_binary(), "serve", *listen, *self._options],
            env={**os.environ, **(env_vars or {})},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert node.stderr is not None
        said: list[str] = []
        for line in node.stderr:
            address = address_in(line)
            if address is not None:
                # What it says later must not fill the pipe.
                threading.Thread(target=node.stderr.read, daemon=True).start()
                self._base_url = f"{address}/openenv/{self._environment}"
                return self._base_url
            said.append(line)
        status = node.wait()
        self.stop()
        raise RuntimeError(f"the node ended with status {status}: {''.join(said).strip()}")

    def stop(self) -> None:
        """Ends the node, if it runs, and its sessions."""
        node, self._node, self._base_url = self._node, None, None
        if node is None:
            return
        node.terminate()
        try:
            node.wait(_ENDING)
        except subprocess.TimeoutExpired:
            node.kill()
            node.wait()

    def wait_for_ready(self, timeout_s: float | None = 30.0) -> None:
        """Waits until the node takes sessions.

        Raises:
            RuntimeError: it does not run.
            TimeoutError: it has not been ready in time.
        """
        end = time.monotonic() + (30.0 if timeout_s is None else timeout_s)
        while True:
            try:
                with urllib.request.urlopen(f"{self.base_url}/health", timeout=5):
                    return
            except (urllib.error.URLError, OSError) as error:
                if self._node is not None and self._node.poll() is not None:
                    raise RuntimeError(f"the node has ended: status {self._node.poll()}") from error
                if time.monotonic() >= end:
                    raise TimeoutError(f"the node was not ready within {timeout_s} s") from error
                time.sleep(0.05)

    @property
    def base_url(self) -> str:
        """The URL of the node's environment.

        Raises:
            RuntimeError: the node has not been started.
        """
        if self._base_url is None:
            raise RuntimeError("the node has not been started; call `start`")
        return self._base_url


_NAMES = ("PyExecutor", "PythonExecutor")


def install(
    *environments: ModuleType,
    timeout: float | None = None,
    sandbox: Sandbox | None = None,
    **policy: Any,
) -> Callable[[], None]:
    """Makes the executors in OpenEnv's modules isolet's, in this program. Returns what undoes that.

    A module that has imported an executor before keeps its own, unless it is among `environments`.
    All executors share the sandbox, and each has a session.

    Args:
        *environments: modules of environments that have `PyExecutor` or `PythonExecutor`, such as
            `repl_env.server.repl_environment`.
        timeout: the most seconds that a run may take.
        sandbox: the sandbox; by default one of `policy`.
        **policy: what the code may do, as for `isolet.Sandbox`.
    """
    for module in environments:
        if not any(hasattr(module, name) for name in _NAMES):
            raise ConfigError(f"`{module.__name__}` has neither `PyExecutor` nor `PythonExecutor`")
    # They need smolagents, and `PyExecutor` does not.
    import openenv.core.tools as tools
    import openenv.core.tools.local_python_executor as module

    chosen = _chosen(sandbox, policy)
    seconds = timeout

    class InstalledPyExecutor(PyExecutor):
        """`PyExecutor` with the sandbox that `install` was given."""

        def __init__(self, additional_imports: Sequence[str] | None = None) -> None:
            super().__init__(additional_imports, timeout=seconds, sandbox=chosen)

    class InstalledPythonExecutor(PythonExecutor):
        """`PythonExecutor` with the sandbox that `install` was given."""

        def __init__(
            self, max_output_length: int = 8192, allowed_imports: Sequence[str] | None = None
        ) -> None:
            super().__init__(max_output_length, allowed_imports, timeout=seconds, sandbox=chosen)

    installed: dict[str, Any] = {
        "PyExecutor": InstalledPyExecutor,
        "PythonExecutor": InstalledPythonExecutor,
    }
    originals = [
        (place, name, getattr(place, name))
        for place in (module, tools, *environments)
        for name in _NAMES
        if hasattr(place, name)
    ]
    for place, name, _ in originals:
        setattr(place, name, installed[name])

    def uninstall() -> None:
        for place, name, original in originals:
            if getattr(place, name) is installed[name]:
                setattr(place, name, original)

    return uninstall


def _chosen(sandbox: Sandbox | None, policy: dict[str, Any]) -> Sandbox:
    if sandbox is not None and policy:
        raise TypeError(f"`sandbox` has a policy, so {', '.join(policy)} cannot be given too")
    return Sandbox(**policy) if sandbox is None else sandbox


def _marks(tool: Tool) -> bool:
    """Whether it is a function of the REPL environment that has a counterpart in the guest."""
    name = getattr(tool.function, "__qualname__", "")
    return tool.name in _FINAL_NAMES and name.startswith("REPLEnvironment.")


def _exception(execution: Execution) -> str | None:
    """Returns why the code did not complete, in the REPL environment's form."""
    error = execution.error or execution.system_exit
    if error is not None:
        text = f"{error.type}: {error.message}\n{error.traceback}"
    else:
        text = execution.failure
    lost = loss(execution, _LOST)
    return f"{text}\n{lost}" if lost else text


def _stdout(execution: Execution) -> str:
    parts = [execution.stdout] if execution.stdout else []
    if execution.ok and execution.value_error is not None:
        parts.append(execution.repr or "")
    elif execution.ok and execution.value is not None:
        try:
            parts.append(json.dumps(execution.value))
        except (TypeError, ValueError):
            parts.append(execution.repr or "")
    return "\n".join(parts)


def _stderr(execution: Execution) -> str:
    text = execution.stderr
    error = execution.error or (None if execution.ok else execution.system_exit)
    if error is not None:
        text += error.traceback
    elif not execution.ok:
        text += execution.failure or execution.status
    lost = loss(execution, _LOST)
    return f"{text}\n{lost}" if lost else text
