"""What functions of the host raise, and code that tells what the guest gets: for every adapter."""

from __future__ import annotations

import json


class NoSuchPage(LookupError):
    """One that the guest has not."""


def kinds() -> dict[str, BaseException]:
    return {
        "key": KeyError("k"),
        "os": FileNotFoundError(2, "No such file or directory", "a.txt"),
        "json": json.JSONDecodeError("bad", "[1,\n2", 4),
        "unicode": UnicodeDecodeError("utf-8", b"a\xff", 1, 2, "invalid start byte"),
        "own": NoSuchPage("page 7"),
        "group": ExceptionGroup("some", [ValueError("v"), NoSuchPage("page 8")]),
    }


def fail(kind: str) -> str:
    """Fails in the way that is asked for."""
    raise kinds()[kind]


async def fail_later(kind: str) -> str:
    """Fails in the way that is asked for."""
    raise kinds()[kind]


CODE = """
import json
seen = []
try: fail(kind="key")
except KeyError as e: seen.append(e.args[0])
try: fail(kind="os")
except FileNotFoundError as e: seen += [e.errno, e.filename]
try: fail(kind="json")
except json.JSONDecodeError as e: seen += [e.lineno, e.pos]
try: fail(kind="unicode")
except UnicodeDecodeError as e: seen += [e.start, e.reason]
try: fail(kind="own")
except LookupError as e: seen += [type(e).__name__, str(e)]
try: fail(kind="group")
except* ValueError as g: seen.append(len(g.exceptions))
except* LookupError as g: seen.append(str(g.exceptions[0]))
"""
"""Binds `seen`, which is `SEEN` then. The guest has the function as `fail`."""

SEEN = [
    *("k", 2, "a.txt", 2, 4, 1, "invalid start byte", "NoSuchPage", "page 7"),
    *(1, "page 8"),
]
