"""What the benchmark ran on."""

import datetime
import os
import platform
from pathlib import Path


def description(rounds, installs):
    processor = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            processor = line.partition(":")[2].strip()
            break
    load = os.getloadavg()[0]
    return (
        f"{datetime.date.today()}, {processor}, {os.cpu_count()} cores, {platform.system()}, load "
        f"average {load:.1f} at the start. Medians of {rounds} rounds, {installs} of installations."
    )
