"""The programs that every subject runs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """Code, and the packages that it imports."""

    name: str
    packages: tuple[str, ...]
    code: str


PLOT = Program(
    "plot",
    ("matplotlib",),
    """
import os
import matplotlib.pyplot as plt
plt.plot([1, 4, 9])
plt.savefig("plot.png")
print(os.path.getsize("plot.png"))
""",
)

SETS = [
    Program("numpy", ("numpy",), "import numpy"),
    Program("pandas", ("pandas",), "import pandas"),
    Program("numpy, pandas", ("pandas",), "import numpy, pandas"),
    Program(
        "numpy, pandas, pyplot",
        ("pandas", "matplotlib"),
        "import numpy, pandas, matplotlib.pyplot",
    ),
    Program("scikit-learn", ("scikit-learn",), "from sklearn import linear_model"),
]

# The first run of a session.
SESSION = Program("session", ("pandas",), "import numpy, pandas; int(numpy.arange(3).sum())")

# Prints the milliseconds of each: the best of three, each of so many that a clock of whole
# milliseconds will do.
OPERATIONS = Program(
    "operations",
    ("pandas",),
    r"""
import io, json, sys, time
import numpy as np, pandas as pd
draw = np.random.default_rng(0)
numbers, square = draw.random(1_000_000), draw.random((500, 500))
table = pd.DataFrame({"key": draw.integers(0, 1000, 1_000_000), "value": numbers})
other = pd.DataFrame({"key": np.arange(1000), "name": [f"n{i}" for i in range(1000)]})
text = (table.to_csv(index=False, header=False) * 3).encode()[: 50 << 20].rsplit(b"\n", 1)[0]
operations = {
    "sort 1,000,000 numbers": lambda: np.sort(numbers),
    "sum of 1,000,000": lambda: numbers.sum(),
    "`exp` of 1,000,000": lambda: np.exp(numbers),
    "product of two matrices of 500 × 500": lambda: square @ square,
    "SVD of 200 × 200": lambda: np.linalg.svd(square[:200, :200]),
    "FFT of 1,000,000": lambda: np.fft.fft(numbers),
    "mean by 1,000 groups, 1,000,000 rows": lambda: table.groupby("key")["value"].mean(),
    "join of 1,000,000 rows with 1,000": lambda: table.merge(other, on="key"),
    "sort 1,000,000 rows by a column": lambda: table.sort_values("value"),
    "rolling mean of 1,000,000": lambda: table["value"].rolling(10).mean(),
    "read CSV of 50 MB": lambda: pd.read_csv(io.BytesIO(text), names=["key", "value"]),
}
def taken(operation, count):
    start = time.perf_counter()
    for _ in range(count):
        operation()
    return time.perf_counter() - start

times, failed = {}, {}
for name, operation in operations.items():
    try:
        count = 1
        while taken(operation, count) < 0.1:
            count *= 3
        times[name] = min(taken(operation, count) for _ in range(3)) * 1000 / count
    except Exception as error:
        failed[name] = repr(error)
about = f"CPython {sys.version.split()[0]}, numpy {np.__version__}, pandas {pd.__version__}"
print(json.dumps({"times": times, "failed": failed, "about": about, "bytes": len(text)}))
""",
)


def timed(program):
    """The program, which prints the seconds that it takes, without the interpreter's start."""
    code = f"import time; start = time.perf_counter()\n{program.code}"
    code += "\nprint(time.perf_counter() - start)"
    return Program(program.name, program.packages, code)
