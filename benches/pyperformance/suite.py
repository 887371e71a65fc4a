"""The benchmarks of the package pyperformance: which are measured, and why not the others."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

VERSION = "1.14.0"

# Where pip's `--target` puts them.
BENCHMARKS = "pyperformance/data-files/benchmarks"

UNLISTED = "are not in the suite's own list, `MANIFEST`"

PACKAGES = "need packages from outside of the standard library"

PROCESSES = "start processes"

# What the benchmarks' own metadata does not tell, by directory.
LEFT_OUT = {
    "bm_2to3": PROCESSES,
    "bm_python_startup": PROCESSES,
    "bm_concurrent_imap": "use threads and processes",
    "bm_asyncio_tcp": "use sockets",
    "bm_async_tree": "wait in an event loop, which Pyodide in Node cannot run to its end",
}


@dataclass(frozen=True)
class Benchmark:
    """A script and its options. It may measure several functions."""

    name: str
    script: str
    """Relative to the directory of all benchmarks."""
    options: tuple[str, ...]


def find(directory: Path) -> tuple[list[Benchmark], dict[str, list[str]]]:
    """Returns the benchmarks that are measured, and the names of the others by reason."""
    rows = (directory / "MANIFEST").read_text().splitlines()
    listed = {row.split("\t")[0] for row in rows if not row.startswith("#")}
    found: list[Benchmark] = []
    left_out: dict[str, list[str]] = {}
    for home in sorted(directory.glob("bm_*")):
        reason = LEFT_OUT.get(home.name) or (PACKAGES if needs_packages(home) else None)
        if home.name.removeprefix("bm_") not in listed:
            reason = UNLISTED
        for benchmark in variants(home):
            if reason is None:
                found.append(benchmark)
            else:
                left_out.setdefault(reason, []).append(benchmark.name)
    return found, left_out


def needs_packages(home: Path) -> bool:
    required = read(home / "pyproject.toml")["project"]["dependencies"]
    pinned = home / "requirements.txt"
    return required != ["pyperf"] or (pinned.exists() and pinned.read_text().strip() != "")


def variants(home: Path) -> Iterator[Benchmark]:
    """The benchmarks of a directory: one script, with different options."""
    for file in sorted(home.glob("*.toml"), reverse=True):
        about = read(file)["tool"]["pyperformance"]
        options = tuple(about.get("extra_opts", ()))
        yield Benchmark(about["name"], f"{home.name}/run_benchmark.py", options)


def read(file: Path) -> dict:
    return tomllib.loads(file.read_text())
