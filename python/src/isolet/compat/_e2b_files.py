"""The files of `isolet.compat.e2b.Sandbox`."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Literal

from ..errors import GuestError, TransferError
from ._e2b_models import EntryInfo, FileNotFoundException, SandboxException, WriteInfo

if TYPE_CHECKING:
    from ..session import Session

HOME = "/home/user"

_DO = """\
(lambda os, shutil, path, to: {expression})(
    __import__("os"), __import__("shutil"), *_isolet_paths)
"""
_MAKE = "None if os.path.isdir(path) else (os.makedirs(path), True)[1]"
_MOVE = "(os.makedirs(os.path.dirname(to), exist_ok=True), os.replace(path, to))[0]"
_REMOVE = (
    "shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.remove(path)"
)
_STAT = "[os.path.isdir(path), os.stat(path).st_size] if os.path.exists(path) else None"


class Filesystem:
    """Reads and writes files: `Sandbox.files`. A `path` is relative to `/home/user`.

    A file may have up to 256 MiB. What cannot be done is a `SandboxException`. Further arguments,
    which E2B's service has, are ignored.
    """

    def __init__(self, session: Callable[[], Session]) -> None:
        """Use `Sandbox.files`."""
        self._session = session

    def read(
        self,
        path: str,
        format: Literal["text", "bytes", "stream"] = "text",  # noqa: A002 - as with E2B
        **_: Any,
    ) -> Any:
        """Returns what a file contains.

        Args:
            path: the file.
            format: `text` for a `str`, the default; `bytes` for a `bytearray`; `stream` for an
                iterator of `bytes`.

        Raises:
            FileNotFoundException: there is no such file.
        """
        try:
            data = self._session().files.get(_absolute(path))
        except FileNotFoundError as error:
            raise FileNotFoundException(str(error)) from error
        except TransferError as error:
            raise SandboxException(str(error)) from error
        if format == "bytes":
            return bytearray(data)
        if format == "stream":
            return _pieces(data)
        return data.decode("utf-8", "replace")

    def write(self, path: str, data: str | bytes | bytearray | IO[Any], **_: Any) -> WriteInfo:
        """Writes a file `path`, and makes its directory. `data` may also be an open file."""
        content: Any = data if isinstance(data, (str, bytes, bytearray)) else data.read()
        absolute = _absolute(path)
        session = self._session()
        try:
            session.files.put(absolute, content if isinstance(content, str) else bytes(content))
        except TransferError as error:
            raise SandboxException(str(error)) from error
        return WriteInfo(posixpath.basename(absolute), "file", absolute)

    def write_files(self, files: Sequence[Mapping[str, Any]], **_: Any) -> list[WriteInfo]:
        """Writes `files`: mappings with `path` and `data`."""
        return [self.write(each["path"], each["data"]) for each in files]

    def list(self, path: str, depth: int = 1, **_: Any) -> list[EntryInfo]:
        """Returns the entries of a directory.

        Args:
            path: the directory.
            depth: from how many levels: 1 for the directory itself, the default; 2 for those in it
                too.

        Raises:
            FileNotFoundException: there is no such directory.
        """
        absolute = _absolute(path)
        try:
            entries = self._session().files.list(absolute)
        except TransferError as error:
            kind = SandboxException if self.exists(path) else FileNotFoundException
            raise kind(str(error)) from error
        found: list[EntryInfo] = []
        for entry in entries:
            at = posixpath.join(absolute, entry.name)
            kind = "dir" if entry.is_dir else "file"
            found.append(EntryInfo(entry.name, kind, at, entry.size))
            if entry.is_dir and depth > 1:
                found.extend(self.list(at, depth - 1))
        return found

    def exists(self, path: str, **_: Any) -> bool:
        """Returns whether there is a file or directory `path`."""
        return self._do(_STAT, path) is not None

    def get_info(self, path: str, **_: Any) -> EntryInfo:
        """Returns what is known of the file or directory `path`.

        Raises:
            FileNotFoundException: there is none.
        """
        found = self._do(_STAT, path)
        if found is None:
            raise FileNotFoundException(f"there is no `{path}`")
        is_dir, size = found
        absolute = _absolute(path)
        return EntryInfo(posixpath.basename(absolute), "dir" if is_dir else "file", absolute, size)

    def remove(self, path: str, **_: Any) -> None:
        """Removes the file `path`, or the directory with all that is in it.

        Raises:
            FileNotFoundException: there is none.
        """
        self._do(_REMOVE, path)

    def rename(self, old_path: str, new_path: str, **_: Any) -> EntryInfo:
        """Moves the file or directory `old_path` to `new_path`.

        Raises:
            FileNotFoundException: there is none.
        """
        self._do(_MOVE, old_path, new_path)
        return self.get_info(new_path)

    def make_dir(self, path: str, **_: Any) -> bool:
        """Makes the directory `path` and its parents. Returns `False` if there is one."""
        return self._do(_MAKE, path) is True

    def _do(self, expression: str, path: str, to: str = ".") -> Any:
        session = self._session()
        paths = [_absolute(path), _absolute(to)]
        code = _DO.format(expression=expression)
        try:
            return session.eval(code, inputs={"_isolet_paths": paths})
        except GuestError as error:
            failed = error.execution.error
            if failed is not None and failed.type == "FileNotFoundError":
                raise FileNotFoundException(failed.message) from error
            raise SandboxException(str(error)) from error


def _absolute(path: str) -> str:
    return posixpath.normpath(posixpath.join(HOME, path))


def _pieces(data: bytes, size: int = 64 * 1024) -> Iterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]
