"""Measures what the packages of isolet-science take: the first plot, later starts, further
sessions, imports without an image, and ordinary operations beside CPython.

    python3 benches/science.py ISOLET BUNDLE [CPYTHON]

ISOLET is a release build, BUNDLE a directory that `cargo xtask wheel --science` has made
(`target/science/bundle`), CPYTHON a Python with numpy and pandas of the same versions. The machine
has to be idle. Each number is the median of the rounds.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 5
# How many sessions are measured, after as many others. How long the processes that are kept ready
# take to be there, in seconds.
SESSIONS, SETTLED = 20, 2
PLOT = """
import matplotlib.pyplot as plt
plt.plot([1, 4, 9])
plt.savefig("plot.png")
"""
SETS = {
    "numpy": "import numpy",
    "numpy, pandas": "import numpy, pandas",
    "numpy, pandas, pyplot": "import numpy, pandas, matplotlib.pyplot",
    "scikit-learn": "from sklearn import linear_model",
}
# Prints the milliseconds of each, the best of three after one to warm up.
OPERATIONS = r"""
import io, json, time
import numpy as np, pandas as pd
draw = np.random.default_rng(0)
numbers, square = draw.random(1_000_000), draw.random((500, 500))
table = pd.DataFrame({"key": draw.integers(0, 1000, 1_000_000), "value": numbers})
other = pd.DataFrame({"key": np.arange(1000), "name": [f"n{i}" for i in range(1000)]})
text = (table.to_csv(index=False, header=False) * 3).encode()[: 50 << 20].rsplit(b"\n", 1)[0]
operations = {
    "sort 1,000,000": lambda: np.sort(numbers),
    "sum 1,000,000": lambda: numbers.sum(),
    "exp 1,000,000": lambda: np.exp(numbers),
    "matmul 500": lambda: square @ square,
    "svd 200": lambda: np.linalg.svd(square[:200, :200]),
    "FFT 1,000,000": lambda: np.fft.fft(numbers),
    "group by, mean": lambda: table.groupby("key")["value"].mean(),
    "join": lambda: table.merge(other, on="key"),
    "sort by a column": lambda: table.sort_values("value"),
    "rolling mean": lambda: table["value"].rolling(10).mean(),
    "read CSV of 50 MB": lambda: pd.read_csv(io.BytesIO(text), names=["key", "value"]),
}
times = {"text bytes": len(text), "numpy": np.__version__, "pandas": pd.__version__}
for name, operation in operations.items():
    operation()
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        operation()
        taken.append(time.perf_counter() - start)
    times[name] = min(taken) * 1000
print(json.dumps(times))
"""


def main():
    isolet, bundle, *cpython = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        environment = {**os.environ, "XDG_CACHE_HOME": scratch, "ISOLET_BUNDLE": bundle}

        def run(*arguments):
            start = time.perf_counter()
            done = subprocess.run(
                [isolet, *arguments], env=environment, capture_output=True, text=True, check=True
            )
            return time.perf_counter() - start, done.stdout

        run("run", "-c", "1")
        first, _ = run("run", "-c", PLOT)
        print(f"first plot: {first:.2f} s")
        imports = {
            name: statistics.median(
                float(run("run", "--no-image", "-c", timed(code))[1]) for _ in range(ROUNDS)
            )
            for name, code in SETS.items()
        }
        prepared, _ = run("packages", "prepare")
        print(f"all images: {prepared:.1f} s")
        for name, code in SETS.items():
            start = statistics.median(run("run", "-c", code)[0] for _ in range(ROUNDS + 2))
            print(f"{name}: without an image {imports[name]:.2f} s, with it {start:.2f} s in all")
        sessions(isolet, environment)
        table(json.loads(run("run", "--timeout", "10m", "-c", OPERATIONS)[1]), cpython)


def timed(code):
    return f"import time; start = time.perf_counter()\n{code}\nprint(time.perf_counter() - start)"


def sessions(isolet, environment):
    """Opens sessions in one server, each of which imports numpy and pandas."""
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "python/src"))
    from isolet import Sandbox, Server

    with Server(isolet, env=environment) as server:
        sandbox = Sandbox(server=server)
        code = "import numpy, pandas; int(numpy.arange(3).sum())"
        opened, times, grown = [], [], 0
        for nth in range(SESSIONS * 2):
            if nth == SESSIONS:
                time.sleep(SETTLED)
                grown = -memory()
            start = time.perf_counter()
            session = sandbox.session()
            session.run(code)
            times.append(time.perf_counter() - start)
            opened.append(session)
        time.sleep(SETTLED)
        grown += memory()
        taken = statistics.median(times[SESSIONS:]) * 1000
        each = grown / SESSIONS / 2**20
        print(f"a further session with numpy and pandas: {taken:.1f} ms, {each:.1f} MiB")


def memory():
    """Returns the proportional memory of the server and its workers, in bytes."""
    total = 0
    for process in children(os.getpid()):
        try:
            rollup = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text()
        except OSError:
            continue
        line = next(line for line in rollup.splitlines() if line.startswith("Pss:"))
        total += int(line.split()[1]) << 10
    return total


def children(process):
    found = []
    for task in pathlib.Path(f"/proc/{process}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *children(int(child))]
    return found


def table(ours, cpython):
    theirs = {}
    if cpython:
        done = subprocess.run(
            [*cpython, "-c", OPERATIONS], capture_output=True, text=True, check=True
        )
        theirs = json.loads(done.stdout)
    print("| operation | isolet, ms | CPython, ms | ratio |\n|-|-|-|-|")
    for name, taken in ours.items():
        if isinstance(taken, float):
            other = theirs.get(name)
            ratio = f"{other:.1f} | {taken / other:.1f}" if other else "- | -"
            print(f"| {name} | {taken:.1f} | {ratio} |")
    print({key: (value, theirs.get(key)) for key, value in ours.items() if not isinstance(value, float)})


main()
