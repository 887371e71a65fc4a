"""What processes use, by /proc."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def tree(*roots: int) -> list[int]:
    """These processes and all that they have started."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name, in parentheses, may have anything in it.
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        children.setdefault(parent, []).append(int(stat.parent.name))
    found = list(roots)
    for process in found:
        found.extend(children.get(process, []))
    return found


def pss(processes: Iterable[int]) -> int:
    """The bytes of memory of processes; those that several share are counted once, in parts."""
    total = 0
    for process in processes:
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    return total


def descriptors(process: int) -> int:
    return len(list(Path(f"/proc/{process}/fd").iterdir()))


def threads(process: int) -> int:
    return len(list(Path(f"/proc/{process}/task").iterdir()))
