"""How long code takes, in the words of IPython."""

import gc
import itertools
import math
import time
import timeit

RUNS = 7
ENOUGH = 0.2  # seconds of one run
UNITS = ("s", "ms", "μs", "ns")
LONG = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
NAME = "<magic-timeit>"


def text(seconds, precision=3):
    """A time in the unit that fits it."""
    if seconds >= 60:
        parts = []
        for size, unit in LONG:
            count, seconds = divmod(seconds, size)
            if count:
                parts.append(f"{int(count)}{unit}")
            if seconds < 1:
                break
        return " ".join(parts)
    seconds = float(f"{seconds:.{precision}g}")
    order = min(-(math.floor(math.log10(seconds)) // 3), 3) if seconds > 0 else 3
    return f"{seconds * 1000**order:.{precision}g} {UNITS[order]}"


class TimeitResult:
    """What `%timeit -o` returns."""

    def __init__(self, loops, runs, compile_time, precision):
        self.loops, self.repeat, self.all_runs = loops, len(runs), runs
        self.timings = [seconds / loops for seconds in runs]
        self.best, self.worst = min(self.timings), max(self.timings)
        self.compile_time = compile_time
        self._precision = precision

    @property
    def average(self):
        return math.fsum(self.timings) / len(self.timings)

    @property
    def stdev(self):
        mean = self.average
        squares = math.fsum((each - mean) ** 2 for each in self.timings)
        return math.sqrt(squares / len(self.timings))

    def __str__(self):
        mean, deviation = (text(each, self._precision) for each in (self.average, self.stdev))
        runs = f"{self.repeat} run{'' if self.repeat == 1 else 's'}"
        loops = f"{self.loops:,} loop{'' if self.loops == 1 else 's'}"
        return f"{mean} ± {deviation} per loop (mean ± std. dev. of {runs}, {loops} each)"

    def __repr__(self):
        return f"<TimeitResult : {self}>"


def measure(body, setup, namespace, loops, runs, precision):
    """Runs code as often as takes long enough to be measured, and that several times."""
    started = time.perf_counter()
    compile(body, NAME, "exec")  # so that it is the code that an error is in
    timer = timeit.Timer(body, setup, globals=namespace)
    took = time.perf_counter() - started
    was_enabled = gc.isenabled()
    try:
        loops = loops or enough(timer)
        return TimeitResult(loops, [timer.timeit(loops) for _ in range(runs)], took, precision)
    finally:
        if was_enabled:
            gc.enable()


def enough(timer):
    for exponent in itertools.count():
        loops = 10**exponent
        if timer.timeit(loops) >= ENOUGH or exponent == 9:
            return loops
