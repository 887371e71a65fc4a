"""What processes use, by /proc."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def tree(*roots: int) -> list[int]:
    """These processes and all that they have started."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            stat = Path(f"/proc/{name}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        # The process's name, in parentheses, may have anything in it.
        children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(name))
    found = list(roots)
    for process in found:
        found.extend(children.get(process, []))
    return found


def pss(processes: Iterable[int], kinds: tuple[str, ...] = ("Pss",)) -> int:
    """The bytes of memory of processes; those that several share are counted once, in parts."""
    total = 0
    for process in processes:
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += sum(int(line.split()[1]) << 10 for line in lines if line.split(":")[0] in kinds)
    return total


def own_pss(processes: Iterable[int]) -> int:
    """As `pss`, without files, of which other nodes on the machine may have a part or not."""
    return pss(processes, ("Pss_Anon", "Pss_Shmem"))


def descriptors(process: int) -> int:
    return len(os.listdir(f"/proc/{process}/fd"))


def threads(process: int) -> int:
    return len(os.listdir(f"/proc/{process}/task"))
