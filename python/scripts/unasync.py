"""Generates the modules of the synchronous API that differ from the asynchronous ones by `await`.

`cargo xtask generate` writes them, and `cargo xtask lint` fails if one is out of date. A source
must not use asyncio itself: what waits in another way is in modules that are written by hand on
both sides and have the same names, such as `_core`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PACKAGE = Path("src/isolet")

TWINS = {
    "aio/_sandbox.py": "_sandbox.py",
    "aio/session.py": "session.py",
    "compat/_e2b_async.py": "compat/_e2b_sync.py",
}
"""The sources, and what is generated from each."""

RULES = [
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\b__a(enter|exit|iter|next)__\b", r"__\1__"),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"\bAsync(Iterator|Iterable|Generator)\b", r"\1"),
    (r"\bAsync(Sandbox|Filesystem|Commands)\b", r"\1"),
    (r"\bAwaitable\[(\w+)\]", r"\1"),
    (r"\b_e2b_async_waits\b", "_e2b_sync_waits"),
    (r"\bisolet\.aio\b", "isolet"),
    (r"\bthe asynchronous API\b", "the synchronous API"),
    (r" Those of the synchronous one are generated from it\.", ""),
]
"""What is replaced by what, in code and docstrings."""

IMPORTS = {
    "aio": (r"(?m)^( *from \.)\.", r"\1"),
    "compat": (r"(?m)^( *from \.\.)aio\.", r"\1"),
}
"""The same of imports, by the folder of the source."""

HEADER = "# Generated from `{source}` by `cargo xtask generate`: change that file.\n"


def generated(source: str, ruff: str) -> str:
    """Returns the synchronous twin of a source, formatted."""
    code = (PACKAGE / source).read_text()
    for pattern, replacement in [IMPORTS[source.partition("/")[0]], *RULES]:
        code = re.sub(pattern, replacement, code)
    code = HEADER.format(source=source) + code
    name = str(PACKAGE / TWINS[source])
    # What else is to be simplified without `await` is found by the linter.
    fixes = ["check", "--fix-only", "--unsafe-fixes", "--select", "F401,I,SIM117,UP028"]
    for command in (fixes, ["format"]):
        args = [ruff, *command, "--quiet", "--no-cache", "--stdin-filename", name, "-"]
        code = subprocess.check_output(args, input=code, text=True)
    return code


def main() -> int:
    """Writes the twins. With `--check`, says which are out of date instead."""
    ruff, *options = sys.argv[1:]
    out_of_date = 0
    for source, twin in TWINS.items():
        path, code = PACKAGE / twin, generated(source, ruff)
        if path.exists() and path.read_text() == code:
            continue
        if options == ["--check"]:
            print(f"`{path}` is not what `{source}` gives: run `cargo xtask generate`")
            out_of_date = 1
        else:
            path.write_text(code)
    return out_of_date


if __name__ == "__main__":
    sys.exit(main())
