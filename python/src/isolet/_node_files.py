"""The files of a session on a node."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable
from urllib.parse import quote

from . import _session
from ._http import small

_HOME = "/home/user"


class Files:
    """The files of a session. Relative ones are in `/home/user`."""

    def __init__(
        self,
        ask: Callable[[str, str, bytes], bytes],
        find: Callable[[str, str], bytes | None],
    ) -> None:
        """Use `Session.files`."""
        self._ask = ask
        self._find = find

    def put(self, path: str | os.PathLike[str], data: str | bytes | os.PathLike[str]) -> None:
        """Writes a file, and makes its directory.

        Args:
            path: where the guest sees it.
            data: a text, which is written as UTF-8; bytes; or the `Path` of a file of this machine,
                which is copied.

        Raises:
            OSError: it cannot be written, such as `IsADirectoryError` or `PermissionError`; or the
                file of this machine cannot be read.
            TransferError: it is too large.
            BusyError: code runs.
        """
        content = small(_session.contents(data))
        with _session.files_of(os.fspath(path)):
            self._ask("PUT", _file(path), content)

    def get(self, path: str | os.PathLike[str]) -> bytes:
        """Returns what the file `path` contains.

        Raises:
            FileNotFoundError: there is no such file.
            OSError: it cannot be read, such as `IsADirectoryError`.
            TransferError: it is larger than the limit `value`.
            BusyError: code runs.
        """
        with _session.files_of(os.fspath(path)):
            found = self._find("GET", _file(path))
        if found is None:
            raise _session.missing(os.fspath(path))
        return found

    def remove(self, path: str | os.PathLike[str]) -> bool:
        """Removes the file or empty directory `path`. Returns whether there was one.

        Raises:
            OSError: it cannot be removed.
            BusyError: code runs.
        """
        with _session.files_of(os.fspath(path)):
            return self._find("DELETE", _file(path)) is not None


def _file(path: str | os.PathLike[str]) -> str:
    return f"/files{quote(posixpath.join(_HOME, _session.guest_path(path)))}"
