"""Runs a benchmark as a script in a guest, and says what the guest is."""

import itertools
import json
import os
import platform
import runpy
import sys
import time

import pyperf

# The benchmarks lie in directories that may be read-only.
sys.dont_write_bytecode = True


def run(path, options, plan):
    """Runs the unchanged script of a benchmark.

    Args:
        path: the script.
        options: its command line.
        plan: loops by name, as in `pyperf.plan`.

    Returns:
        `pyperf.measured` as JSON.
    """
    pyperf.plan, pyperf.measured = plan, {}
    sys.argv = [path, *options]
    # One benchmark needs pickle without its accelerator. The guest's own work may have imported it.
    for name in ("pickle", "_pickle"):
        sys.modules.pop(name, None)
    sys.path.insert(0, os.path.dirname(path))
    try:
        runpy.run_path(path, run_name="__main__")
    finally:
        del sys.path[0]
    return json.dumps(pyperf.measured)


def about():
    """The guest's Python and the resolution of its clock, as JSON."""
    seen = sorted({time.perf_counter() for _ in range(100_000)})
    tick = min(after - before for before, after in itertools.pairwise(seen))
    python = platform.python_version()
    return json.dumps({"python": python, "platform": sys.platform, "tick": tick})
