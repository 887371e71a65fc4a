"""Finds the `isolet` binary."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from .errors import StartError

_NAME = "isolet.exe" if os.name == "nt" else "isolet"


def find_binary(binary: str | os.PathLike[str] | None = None) -> str:
    """Returns the path of the `isolet` binary.

    It is `binary`, or `$ISOLET_BIN`, or the first one in: the scripts of this environment, those of
    the user, the directory of the running Python, that of this package with `pip install --target`,
    and `PATH`.

    Raises:
        StartError: there is none. The message lists where it was looked for.
    """
    for given, how in ((binary, "the argument `binary`"), (_variable(), "`$ISOLET_BIN`")):
        if given is not None:
            path = os.path.abspath(given)
            if _is_program(path):
                return path
            raise StartError(f"{how} names `{path}`, which is no program")
    looked: list[str] = []
    for directory in _directories():
        path = os.path.join(directory, _NAME)
        if path in looked:
            continue
        # This very package could be run by a script of the same name. It would start itself.
        if _is_program(path) and not _is_script(path):
            return path
        looked.append(path)
    raise StartError(
        f"the program `{_NAME}` is missing; looked for {', '.join(f'`{p}`' for p in looked)}",
        "install a wheel of `isolet` for this platform, or set `ISOLET_BIN`",
    )


def _variable() -> str | None:
    return os.environ.get("ISOLET_BIN") or None


def _directories() -> Iterator[str]:
    import sysconfig

    yield sysconfig.get_path("scripts")
    user = sysconfig.get_preferred_scheme("user")
    yield sysconfig.get_path("scripts", scheme=user)
    yield os.path.dirname(sys.executable or "")
    packages = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    yield os.path.join(packages, "bin")
    for directory in os.environ.get("PATH", "").split(os.pathsep):
        if directory:
            yield os.path.abspath(directory)


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _is_script(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == b"#!"
