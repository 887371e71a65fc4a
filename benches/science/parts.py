"""The parts of the benchmark."""

import json
import statistics
import sys
import time
from pathlib import Path

import processes
import programs

# `benches/peers`, for what it has to measure memory.
sys.path.append(str(Path(__file__).parent.parent / "peers"))
from peer import settled_pss

# The tables.
TAKEN, OPERATION = "taken", "operation"

# How long the processes that are kept ready take to be there, in seconds.
SETTLED = 2


def install(results, subjects, rounds):
    """Installs each subject and makes the first plot with it. Returns those that are installed."""
    row = "installation, s"
    for subject in turns(results, row, subjects, rounds):
        with results.attempt(row, subject):
            subject.clear()
            start = time.perf_counter()
            subject.install()
            installed = time.perf_counter() - start
            results.add(TAKEN, row, subject, installed)
            plotted = plot(results, "first plot, s", subject)
            if plotted:
                both = "installation and first plot, s"
                results.add(TAKEN, both, subject, installed + plotted)
            plot(results, "the same plot again, s", subject)
    left = []
    for subject in turns(results, row, subjects, 1):
        with results.attempt("the rest of the installation", subject):
            subject.complete()
            left.append(subject)
    return left


def plot(results, row, subject):
    """Returns the seconds that the plot takes, if it is made."""
    with results.attempt(row, subject):
        taken, printed = subject.run(programs.PLOT)
        if int(printed) < 1000:
            raise processes.Failed(f"the plot has {printed} bytes")
        results.add(TAKEN, row, subject, taken)
        return taken
    return None


def starts(results, subjects, rounds):
    """Commands that import a set of packages: in all, and the import alone without an image."""
    for packages in programs.SETS:
        row = f"{packages.name}: start to exit, s"
        for subject in turns(results, row, subjects, rounds):
            with results.attempt(row, subject):
                results.add(TAKEN, row, subject, subject.run(packages)[0])
    for packages in programs.SETS:
        row = f"{packages.name}: import without an image, s"
        for subject in turns(results, row, subjects, rounds):
            with results.attempt(row, subject):
                _, printed = subject.run(programs.timed(packages), image=False)
                results.add(TAKEN, row, subject, float(printed))


def sessions(results, subjects):
    """Sessions of one process that import numpy and pandas, after others that are kept too."""
    duration = "a further session with numpy and pandas, ms"
    memory = "memory of a further session, MiB"
    for subject in subjects:
        with results.attempt(duration, subject):
            line = [str(word) for word in subject.server(programs.SESSION)]
            with processes.served(line, subject.env, subject.directory) as ask:
                for _ in range(subject.before):
                    ask("open")
                time.sleep(SETTLED)
                before = settled_pss()
                times = [float(ask("open")) for _ in range(subject.sessions)]
                time.sleep(SETTLED)
                grown = settled_pss() - before
            results.add(TAKEN, duration, subject, statistics.median(times))
            results.add(TAKEN, memory, subject, grown / subject.sessions / 2**20)


def operations(results, subjects, rounds):
    """What numpy and pandas do. Returns the versions of each subject, a line each."""
    about, row = {}, "operations"
    for subject in turns(results, row, subjects, rounds):
        with results.attempt(row, subject):
            said = json.loads(subject.run(programs.OPERATIONS)[1])
            about[subject.title] = f"{said['about']}, {said['bytes']:,} bytes of CSV"
            for name, taken in said["times"].items():
                results.add(OPERATION, name, subject, taken)
            for name, reason in said["failed"].items():
                results.failed.add((name, subject.name))
                print(f"{subject.title}, {name}: failed: {reason}", file=sys.stderr)
    return [f"{title}: {versions}" for title, versions in about.items()]


def turns(results, row, subjects, rounds):
    """Gives each subject in each round, unless the row has failed with it. None is always first,
    or always after the same one."""
    for number in range(rounds):
        for place in range(len(subjects)):
            subject = subjects[(place + number) % len(subjects)]
            if not results.has_failed(row, subject):
                yield subject
