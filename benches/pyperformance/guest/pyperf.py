"""A stand-in for the module `pyperf`, which the benchmarks import, inside a guest.

`pyperf` starts a process for each measurement. This one runs each benchmark in the interpreter that
imports it, a number of times that the caller has set.
"""

import argparse
import platform
from time import perf_counter

__all__ = ["Runner", "perf_counter", "python_implementation"]

plan = {}
"""How many loops to run, by the names of benchmarks. A name that is missing is run with ever more
loops until it has taken `LONG` seconds."""

measured = {}
"""The loops and the seconds of one loop, by the names of benchmarks."""

LONG = 0.05


def python_implementation():
    return platform.python_implementation().lower()


class Runner:
    def __init__(self, **_):
        self.argparser = argparse.ArgumentParser()
        self.metadata = {}

    def parse_args(self):
        return self.argparser.parse_args()

    def bench_time_func(self, name, function, *arguments, inner_loops=1, **_):
        """Measures a function that takes a number of loops, and returns their seconds."""
        if name in plan:
            loops = plan[name]
            taken = function(loops, *arguments)
        else:
            loops = 1
            while (taken := function(loops, *arguments)) < LONG:
                loops *= 2
        measured[name] = (loops, taken / loops / inner_loops)

    def bench_func(self, name, function, *arguments, **options):
        """Measures calls of a function."""

        def repeated(loops):
            start = perf_counter()
            for _ in range(loops):
                function(*arguments)
            return perf_counter() - start

        self.bench_time_func(name, repeated, **options)

    def bench_async_func(self, name, function, *arguments, **options):
        """Measures coroutines that never wait. They need no event loop, and get none."""

        def run():
            try:
                function(*arguments).send(None)
            except StopIteration:
                return
            raise RuntimeError("the benchmark waits for an event loop")

        self.bench_func(name, run, **options)
