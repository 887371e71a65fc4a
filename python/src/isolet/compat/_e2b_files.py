"""What the files of `isolet.compat.e2b.Sandbox` and `AsyncSandbox` share."""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Generator, Iterator
from typing import IO, TYPE_CHECKING, Any

from ..errors import GuestError, IsoletError
from ._e2b_models import EntryInfo, FileNotFoundException, SandboxException, WriteInfo

if TYPE_CHECKING:
    from ..execution import FileEntry

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
