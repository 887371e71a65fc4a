"""What the sessions of both APIs send: arguments of requests, and results of answers."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Generator, Iterable, Mapping
from typing import Any

from ._shapes import wrong
from ._values import text, to_plain, variables
from .errors import (
    ConfigError,
    IsoletError,
    JournalError,
    ProtocolError,
    SessionClosedError,
    TransferError,
)
from .execution import (
    Display,
    FileEntry,
    Isolation,
    Output,
    Package,
    StoppedAt,
    Variable,
    display_from_wire,
)
from .journal import Journal


class Beginning:
    """How a session begins: the request, and what it says after the session and the sandbox."""

    __slots__ = ("_more", "_original", "journal", "operation")

    def __init__(
        self,
        operation: str,
        *more: Any,
        journal: str | None = None,
        original: int | None = None,
    ) -> None:
        self.operation = operation
        self.journal = journal
        """The path that the session is recorded to from then on."""
        self._more = more
        self._original = original

    def arguments(self, session: int, sandbox: int) -> list[Any]:
        """Returns the arguments of the request."""
        if self._original is not None:
            return [self._original, session]
        return [session, sandbox, *self._more]


def copied(original: int) -> Beginning:
    """A copy of another session."""
    return Beginning("fork", original=original)


def afresh(inputs: Mapping[str, Any] | None, journal: Journal | None = None) -> Beginning:
    """A fresh session with variables, which is recorded if there is a journal."""
    plain = variables(inputs) if inputs else None
    if journal is not None:
        return Beginning("session", plain, journal.to_wire(), journal=journal.absolute)
    return Beginning("session") if plain is None else Beginning("session", plain)


def restored(path: str | os.PathLike[str]) -> Beginning:
    """A session that was saved to a file."""
    return Beginning("restore", host_path(path))


def resumed(journal: Journal) -> Beginning:
    """The session of a journal, with which it goes on."""
    return Beginning("resume", journal.to_wire(), journal=journal.absolute)


def looked_back(
    path: str | os.PathLike[str],
    until_call: int | None,
    until_time: float | None,
    until_line: int | tuple[str, int] | None,
) -> Beginning:
    """The session of a journal, to look back at it."""
    until: dict[str, Any] = {}
    if until_call is not None:
        until["until_call"] = until_call
    if until_time is not None:
        until["until_time"] = float(until_time)
    if until_line is not None:
        file, line = (None, until_line) if isinstance(until_line, int) else until_line
        until["until_line"] = [file, line]
    return Beginning("replay", text(host_path(path), "path"), until)


def no_run(journal: Journal, until: int | float | None = None) -> JournalError:
    """Returns why nothing goes on, or nothing is replayed until then."""
    where = "" if until is None else f" before {until}"
    return JournalError(f"the journal `{journal.absolute}` has no run{where}")


def stopped_at(answer: dict[str, Any] | None) -> StoppedAt | None:
    """Returns what the answer to `bind_locals` tells."""
    if answer is None:
        return None
    return StoppedAt(answer["function"], answer["line"], answer["names"])


def recorded_elsewhere(path: str) -> ConfigError:
    """Returns why a session is not recorded to a second journal."""
    return ConfigError(
        f"the session is recorded to `{path}` already", "`session.end_recording()` ends that"
    )


def run_arguments(inputs: Mapping[str, Any] | None, options: dict[str, Any] | None) -> list[Any]:
    """Returns the arguments of `run` after the code."""
    if options:
        return [variables(inputs) if inputs else None, options]
    return [variables(inputs)] if inputs else []


def unless_closed(error: IsoletError, is_closed: bool) -> IsoletError:
    """Returns why a request failed: the server does not know of sessions that were closed."""
    if is_closed and isinstance(error, ProtocolError):
        return SessionClosedError("the session was closed", "make a new one: `sandbox.session()`")
    return error


def event(message: list[Any]) -> Output | Display:
    """Returns what an `output` or `display` event tells."""
    if message[0] == "output":
        return Output("stderr" if message[2] == 2 else "stdout", message[3])
    return display_from_wire(message[2])


def isolation(report: dict[str, Any]) -> Isolation:
    """Returns what the answer to `session` tells."""
    return Isolation(report["isolation"], report.get("layers", {}))


def variable_list(answer: list[dict[str, str]]) -> list[Variable]:
    """Returns the answer to `variables`."""
    return [Variable(each["name"], each["type"], each["repr"]) for each in answer]


def package_list(answer: list[dict[str, str]]) -> list[Package]:
    """Returns the answer to `load_packages`."""
    return [Package(each["name"], each["version"]) for each in answer]


def entry_list(answer: list[dict[str, Any]]) -> list[FileEntry]:
    """Returns the answer to `list_files`."""
    return [FileEntry(each["name"], each["is_dir"], each["size"]) for each in answer]


# What the guest calls failures of files, and their numbers here: its own are others.
_FAILURES: dict[str, tuple[type[OSError], int]] = {
    "FileNotFoundError": (FileNotFoundError, errno.ENOENT),
    "NotADirectoryError": (NotADirectoryError, errno.ENOTDIR),
    "IsADirectoryError": (IsADirectoryError, errno.EISDIR),
    "PermissionError": (PermissionError, errno.EACCES),
    "FileExistsError": (FileExistsError, errno.EEXIST),
    "OSError": (OSError, errno.EIO),
}
_NUMBERS = {
    "directory not empty": errno.ENOTEMPTY,
    "read-only file system": errno.EROFS,
    "quota exceeded": errno.EDQUOT,
    "no space left on device": errno.ENOSPC,
    "file too large": errno.EFBIG,
    "name too long": errno.ENAMETOOLONG,
    "symbolic link": errno.ELOOP,
}
_REASON = re.compile(
    r"the guest could not (\w+) `.*?`: (\w+): (?:\[Errno \d+\] )?(.*?)(?:: '.*')?", re.DOTALL
)


def file_failure(error: TransferError, path: str) -> Exception:
    """Returns why a file could not be read, written, listed or removed."""
    reason = _REASON.fullmatch(str(error.args[0]))
    kind, number = _FAILURES.get(reason[2] if reason else "", (None, 0))
    if reason is None or kind is None:
        return error
    if kind is FileNotFoundError:
        return missing(path, "directory" if reason[1] == "list" else "file")
    text = reason[3].lower()
    if kind is OSError:
        number = next((each for name, each in _NUMBERS.items() if name in text), number)
    return kind(number, f"{text}, in the session", path)


@contextlib.contextmanager
def files_of(path: str) -> Generator[None, None, None]:
    """Raises `OSError` for what the guest cannot do with a file."""
    try:
        yield
    except TransferError as error:
        raise file_failure(error, path) from None


def missing(path: str, what: str = "file") -> FileNotFoundError:
    """Returns the exception for a path that is not in a session."""
    return FileNotFoundError(errno.ENOENT, f"there is no such {what} in the session", path)


def contents(data: str | bytes | os.PathLike[str]) -> bytes:
    """Returns what a file is to contain: bytes, a text, or what a file of the host has."""
    if isinstance(data, str):
        return text(data, "data").encode()
    if isinstance(data, os.PathLike):
        with open(data, "rb") as file:
            return file.read()
    return bytes(data)


def guest_path(path: str | os.PathLike[str]) -> str:
    """Returns a path of a session."""
    return text(os.fspath(path), "path")


def host_path(path: str | os.PathLike[str]) -> str:
    """Returns a path of the host. The server may have another working directory."""
    return os.path.abspath(path)


def requirements(names: Iterable[str]) -> list[str]:
    """Returns the arguments of `load_packages`."""
    found: list[Any] = list(names)
    for name in found:
        if not isinstance(name, str):
            raise wrong("requirements", name, "a string", "`load_packages('numpy', 'pandas')`")
    return to_plain(found, "requirements")
