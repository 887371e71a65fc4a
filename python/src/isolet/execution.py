"""What a run did: `Execution` and its parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from . import _notebook
from .errors import GuestError, GuestTimeoutError

Syntax = Literal["python", "command", "ipython", "shell"]
"""How code is read."""

Status = Literal[
    "completed",
    "submitted",
    "raised",
    "exited",
    "timeout",
    "limit",
    "memory",
    "interrupted",
    "died",
]


@dataclass(frozen=True, slots=True)
class GuestException:
    """An exception of the guest's code. All of it is text that the guest has chosen."""

    type: str
    """The name of its class, such as `ValueError`."""
    message: str
    """Its `str`. Of more than 65,536 characters, the end."""
    args: list[Any] | None
    """Its arguments, or `None` if they are not JSON."""
    traceback: str
    """The traceback as Python prints it, with the guest's frames only."""
    cause: GuestException | None
    """The exception that caused it."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run used."""

    wall_time: float = 0.0
    """Seconds from its start to its end."""
    host_time: float = 0.0
    """The part of `wall_time` in which the guest waited for tools of the host, in seconds."""
    peak_memory_bytes: int = 0
    """The highest memory of the session so far, without JavaScript's heap."""
    stdout_bytes: int = 0
    """Bytes written to the standard output, kept or not."""
    stderr_bytes: int = 0
    """Bytes written to the standard error, kept or not."""
    tool_calls: int = 0
    """Calls of tools, in number."""


@dataclass(frozen=True, slots=True)
class Truncated:
    """How much of a run's results was left out because of limits. False if nothing was."""

    stdout_bytes: int = 0
    """Bytes from the middle of the standard output."""
    stderr_bytes: int = 0
    """Bytes from the middle of the standard error."""
    displays: int = 0
    """Displays, in number: the last ones."""
    files: int = 0
    """Entries of `Execution.files`. The files themselves are there."""
    locals: int = 0
    """Entries of `Execution.locals`."""

    def __bool__(self) -> bool:
        return any((self.stdout_bytes, self.stderr_bytes, self.displays, self.files, self.locals))


@dataclass(frozen=True, slots=True)
class Restored:
    """How a session goes on after a run that has ended its interpreter: from its last checkpoint.

    Files of mounts keep what was written to them.
    """

    lost_runs: int = 1
    """Runs whose changes are lost: this one, and those before it whose state was not kept yet."""


@dataclass(frozen=True, slots=True)
class Display:
    """A picture, table or other rich result: one object in one or several formats."""

    data: dict[str, str | bytes]
    """The contents by MIME type, such as `image/png`, `text/html` and `text/plain`.

    Pictures are bytes, other formats are texts; `docs/concepts/displays.md` lists them. They
    come from the guest: HTML and SVG may contain anything."""
    is_result: bool = False
    """Whether it is the value of the last expression."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return _notebook.bundle([self], "", "", "<display>")


@dataclass(frozen=True, slots=True)
class Output:
    """Text that the guest wrote, as `Session.stream` yields it."""

    stream: Literal["stdout", "stderr"]
    """Where it wrote it."""
    text: str
    """What it wrote: whole lines, or less of them. `str(output)` is it, too."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that a run has made or changed."""

    path: str
    """Its absolute path in the guest, for `Session.files`."""
    size: int
    """In bytes."""


@dataclass(frozen=True, slots=True)
class StoppedAt:
    """Where a run was stopped that is looked back at."""

    function: str
    """The name of the function, `<module>` for code outside of functions."""
    line: int
    """The line in its file or cell, from 1 on."""
    names: list[str]
    """The names of its local variables, sorted; none outside of functions."""


_NOTHING: dict[str, Any] = {}
_Counts = TypeVar("_Counts", Usage, Truncated, Restored)


class Execution:
    """What a run did. The result of `Session.run`.

    Look at `ok` or `status`, then at `value`, `stdout`, `error` and `displays`. `text` is all of
    that for a model. `raise_for_error` makes an exception of a failure. In a notebook, it shows
    itself with its pictures.

    The guest chooses every text and value in it: treat them as untrusted.
    """

    __slots__ = ("_fields",)

    _fields: dict[str, Any]

    def __init__(self, fields: dict[str, Any]) -> None:
        """Wraps `fields` as `docs/reference/protocol.md` describes them. `Session.run` does."""
        self._fields = fields

    @property
    def status(self) -> Status:
        """How the run ended.

        `completed`; `submitted`, by `SUBMIT`; `raised` an exception; `exited`, by `sys.exit` or as
        a script of the shell does. Or isolet ended it: `timeout`; `limit`, another limit; `memory`,
        of JavaScript; `interrupted`; `died`, the interpreter has.
        """
        status = self._fields["status"]
        return self._fields["termination"]["kind"] if status == "terminated" else status

    @property
    def ok(self) -> bool:
        """Whether the run completed, submitted a result, or exited with status 0."""
        status = self._fields["status"]
        return status in ("completed", "submitted") or (status == "exited" and not self.exit_code)

    @property
    def value(self) -> Any:
        """The value of the last expression, or what was submitted, as plain data.

        `None` if there is none. If it could not cross, `value_error` says why.
        """
        return self._fields.get("value")

    @property
    def repr(self) -> str | None:
        """The `repr` of the value in the guest, also of one that cannot cross.

        It is cut after 65,536 characters. `None` if there is no value.
        """
        return self._fields.get("repr")

    @property
    def value_error(self) -> str | None:
        """Why the value could not cross, or `None` if it could. The run is `ok` all the same."""
        return self._fields.get("value_error")

    @property
    def exit_code(self) -> int | None:
        """The status of `sys.exit`, or of a script of the shell; `None` if the run did not exit."""
        return self._fields.get("exit_code")

    @property
    def system_exit(self) -> GuestException | None:
        """The `SystemExit` that the run exited by, with what `sys.exit` was given, or `None`."""
        fields = self._fields.get("system_exit")
        return None if fields is None else _exception(fields)

    @property
    def stdout(self) -> str:
        """The standard output, also of a run that failed. `truncated` says what was left out."""
        return self._fields.get("stdout", "")

    @property
    def stderr(self) -> str:
        """The standard error, without the traceback of `error`."""
        return self._fields.get("stderr", "")

    @property
    def displays(self) -> list[Display]:
        """The pictures, tables and other rich results, in order, also of a run that failed."""
        return [display_from_wire(display) for display in self._fields.get("displays", ())]

    @property
    def files(self) -> list[WrittenFile]:
        """The files that the run has made or changed."""
        return [WrittenFile(file["path"], file["size"]) for file in self._fields.get("files", ())]

    @property
    def error(self) -> GuestException | None:
        """The exception, or `None` if the run raised none."""
        fields = self._fields.get("exception")
        return None if fields is None else _exception(fields)

    @property
    def reason(self) -> str | None:
        """Why isolet ended the run, with the limit, or `None` if it did not."""
        termination = self._fields.get("termination")
        return None if termination is None else termination["message"]

    @property
    def failure(self) -> str | None:
        """What went wrong in one line, or `None` if the run is `ok`."""
        if self.ok:
            return None
        error = self._fields.get("exception")
        if error is not None:
            return f"{error['type']}: {error['message']}" if error["message"] else error["type"]
        return self.reason or f"the run exited with status {self.exit_code}"

    @property
    def hint(self) -> str | None:
        """What helps, if a module was missing that a package has; `None` if nothing is known to."""
        return self._fields.get("hint")

    @property
    def locals(self) -> dict[str, str]:
        """The names that the run bound, each with the `repr` of its value.

        A `repr` is cut after 500 characters. What is beyond 16 MiB together is left out.
        """
        return self._fields.get("locals", {})

    @property
    def usage(self) -> Usage:
        """What the run used: seconds, bytes, calls."""
        return _known(Usage, self._fields.get("usage", _NOTHING))

    @property
    def truncated(self) -> Truncated:
        """How much was left out because of limits."""
        return _known(Truncated, self._fields.get("truncated", _NOTHING))

    @property
    def session_alive(self) -> bool:
        """Whether the session can run more code. `Session.reset` makes one that cannot anew."""
        return self._fields.get("session_alive", True)

    @property
    def restored(self) -> Restored | None:
        """Set if the run ended the interpreter and the session goes on from its last checkpoint."""
        restored = self._fields.get("restored")
        return None if restored is None else _known(Restored, restored)

    @property
    def text(self) -> str:
        """What to show a model.

        The standard output and error, then the `repr` of the value, the traceback, or why isolet
        ended the run.
        """
        parts = [self.stdout, self.stderr]
        error = self._fields.get("exception")
        if error is not None:
            parts.append(error["traceback"] or self.failure or "")
        elif not self.ok:
            parts.append(self.failure or "")
        else:
            parts.append(self._shown)
        return "\n".join(part.rstrip("\n") for part in parts if part)

    @property
    def _shown(self) -> str:
        """What a prompt shows of the value: nothing of `None`."""
        is_none = self.value is None and self.value_error is None
        return "" if is_none else self.repr or ""

    def raise_for_error(self) -> Execution:
        """Returns the execution itself if it is `ok`.

        Raises:
            GuestTimeoutError: the run did not end in time.
            GuestError: it failed in another way.
        """
        if self.ok:
            return self
        raise GuestTimeoutError(self) if self.status == "timeout" else GuestError(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        # What comes after the output: `displays` show a value that has a display of its own.
        displays = self.displays
        shown = any(display.is_result for display in displays)
        error = self.error
        last = (error.traceback if error else self.failure) or ("" if shown else self._shown)
        return _notebook.bundle(displays, self.stdout + self.stderr, last, self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Execution) and self._fields == other._fields

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = [f"status={self.status!r}"]
        for name in ("value", "value_error", "exit_code", "stdout", "stderr"):
            if self._fields.get(name) not in (None, ""):
                shown.append(f"{name}={_short(self._fields[name])}")
        if not self.ok and self.failure:
            shown.append(f"failure={_short(self.failure)}")
        for name in ("displays", "files"):
            if name in self._fields:
                shown.append(f"{name}={len(self._fields[name])}")
        return f"Execution({', '.join(shown)})"


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a session."""

    name: str
    """Its name."""
    type: str
    """The name of its class."""
    repr: str
    """Its `repr`, cut after 500 characters."""


@dataclass(frozen=True, slots=True)
class Package:
    """A package that a session has loaded."""

    name: str
    """Its name, as the index has it."""
    version: str
    """Its version, such as `2.1.0`."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """An entry of a directory of a session."""

    name: str
    """Its name, without the directory."""
    is_dir: bool
    """Whether it is a directory itself."""
    size: int
    """In bytes."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """Where a session runs, and what protects the host from it."""

    kind: Literal["process", "thread"]
    """`process`, a locked-down process of its own; or `thread`, one of the server's."""
    layers: dict[str, bool] = field(default_factory=dict[str, bool])
    """The layers of isolation, such as `seccomp`, and whether each is in force."""


def display_from_wire(display: dict[str, Any]) -> Display:
    """Returns the display that the fields of `docs/reference/protocol.md` describe."""
    return Display(display["data"], display.get("is_result", False))


def _known(kind: type[_Counts], fields: dict[str, Any]) -> _Counts:
    """Makes an object of those fields that it has. A newer server may send more."""
    return kind(**{name: fields[name] for name in kind.__dataclass_fields__ if name in fields})


def _exception(fields: dict[str, Any]) -> GuestException:
    args = fields.get("args")
    if args is not None:
        import json

        try:
            args = json.loads(args)
        except ValueError:
            args = None
    cause = fields.get("cause")
    return GuestException(
        fields["type"],
        fields["message"],
        args,
        fields.get("traceback", ""),
        None if cause is None else _exception(cause),
    )


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
