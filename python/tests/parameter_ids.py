"""How parameters of tests are named: each process of pytest-xdist has to have the same names."""

from __future__ import annotations

import re

ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def shown(value: object) -> str:
    """Returns the `repr` of a parameter without the addresses of objects."""
    return ADDRESS.sub("", repr(value))
