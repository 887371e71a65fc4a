"""The files of `isolet.compat.e2b.Sandbox`, and what those of `AsyncSandbox` share with them."""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Literal

from ..errors import GuestError, IsoletError
from ._e2b_models import EntryInfo, FileNotFoundException, SandboxException, WriteInfo

if TYPE_CHECKING:
    from ..execution import FileEntry
    from ..session import Session

HOME = "/home/user"

DO = """\
(lambda os, shutil, path, to: {expression})(
    __import__("os"), __import__("shutil"), *_isolet_paths)
"""
MAKE = "None if os.path.isdir(path) else (os.makedirs(path), True)[1]"
MOVE = "(os.makedirs(os.path.dirname(to), exist_ok=True), os.replace(path, to))[0]"
REMOVE = (
    "shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.remove(path)"
)
STAT = "[os.path.isdir(path), os.stat(path).st_size] if os.path.exists(path) else None"


class Filesystem:
    """Reads and writes files: `Sandbox.files`. A `path` is relative to `/home/user`.

    A file may be as large as the limit `value`, 256 MiB by default. What cannot be done is a
    `SandboxException`. Further arguments, which E2B's service has, are ignored.
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
        with told():
            data = self._session().files.get(absolute(path))
        return pieces(data) if format == "stream" else whole(data, format)

    def write(self, path: str, data: str | bytes | bytearray | IO[Any], **_: Any) -> WriteInfo:
        """Writes a file `path`, and makes its directory. `data` may also be an open file."""
        session = self._session()
        with told():
            session.files.put(absolute(path), contents(data))
        return written(path)

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
        with told():
            entries = self._session().files.list(absolute(path))
        found: list[EntryInfo] = []
        for entry in entries:
            info = entry_info(path, entry)
            found.append(info)
            if entry.is_dir and depth > 1:
                found.extend(self.list(info.path, depth - 1))
        return found

    def exists(self, path: str, **_: Any) -> bool:
        """Returns whether there is a file or directory `path`."""
        return self._do(STAT, path) is not None

    def get_info(self, path: str, **_: Any) -> EntryInfo:
        """Returns what is known of the file or directory `path`.

        Raises:
            FileNotFoundException: there is none.
        """
        return info(path, self._do(STAT, path))

    def remove(self, path: str, **_: Any) -> None:
        """Removes the file `path`, or the directory with all that is in it.

        Raises:
            FileNotFoundException: there is none.
        """
        self._do(REMOVE, path)

    def rename(self, old_path: str, new_path: str, **_: Any) -> EntryInfo:
        """Moves the file or directory `old_path` to `new_path`.

        Raises:
            FileNotFoundException: there is none.
        """
        self._do(MOVE, old_path, new_path)
        return self.get_info(new_path)

    def make_dir(self, path: str, **_: Any) -> bool:
        """Makes the directory `path` and its parents. Returns `False` if there is one."""
        return self._do(MAKE, path) is True

    def _do(self, expression: str, path: str, to: str = ".") -> Any:
        session = self._session()
        with told():
            return session.eval(DO.format(expression=expression), inputs=paths(path, to))


@contextlib.contextmanager
def told() -> Generator[None, None, None]:
    """Raises exceptions of E2B in place of others."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundException(str(error)) from error
    except GuestError as error:
        failed = error.execution.error
        if failed is not None and failed.type == "FileNotFoundError":
            raise FileNotFoundException(failed.message) from error
        raise SandboxException(str(error)) from error
    except (IsoletError, OSError) as error:
        raise SandboxException(str(error)) from error


def paths(path: str, to: str) -> dict[str, Any]:
    """Returns the variables of `DO`."""
    return {"_isolet_paths": [absolute(path), absolute(to)]}


def contents(data: str | bytes | bytearray | IO[Any]) -> str | bytes:
    """Returns what is to be written."""
    content: Any = data if isinstance(data, (str, bytes, bytearray)) else data.read()
    return content if isinstance(content, str) else bytes(content)


def written(path: str) -> WriteInfo:
    """Returns what is known of a file that was written."""
    at = absolute(path)
    return WriteInfo(posixpath.basename(at), "file", at)


def entry_info(directory: str, entry: FileEntry) -> EntryInfo:
    """Returns what is known of an entry of a directory."""
    at = posixpath.join(absolute(directory), entry.name)
    return EntryInfo(entry.name, "dir" if entry.is_dir else "file", at, entry.size)


def info(path: str, found: list[Any] | None) -> EntryInfo:
    """Returns what `STAT` has found."""
    if found is None:
        raise FileNotFoundException(f"there is no `{path}`")
    at = absolute(path)
    return EntryInfo(posixpath.basename(at), "dir" if found[0] else "file", at, found[1])


def whole(data: bytes, format: str) -> str | bytearray:  # noqa: A002 - as with E2B
    """Returns what was read, as text or bytes."""
    return bytearray(data) if format == "bytes" else data.decode("utf-8", "replace")


def absolute(path: str) -> str:
    """Returns the path from the root."""
    return posixpath.normpath(posixpath.join(HOME, path))


def pieces(data: bytes, size: int = 64 * 1024) -> Iterator[bytes]:
    """Yields what was read, piece by piece."""
    for start in range(0, len(data), size):
        yield data[start : start + size]
