"""`python -m isolet`: the `isolet` command."""

from __future__ import annotations

import os
import sys

from ._find import find_binary


def main() -> None:
    """Becomes the command."""
    binary = find_binary()
    if os.name == "nt":
        import subprocess

        sys.exit(subprocess.call([binary, *sys.argv[1:]]))
    os.execv(binary, [binary, *sys.argv[1:]])


if __name__ == "__main__":
    main()
