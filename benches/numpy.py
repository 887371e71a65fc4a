"""What default integers of 64 bits cost: numpy as isolet changes it, and as Pyodide builds it.

    python3 benches/numpy.py ISOLET WHEELS [ROUNDS]

ISOLET is the built command, WHEELS the directory that `cargo xtask test --science` makes. Two
processes take turns, row by row, so that what else a machine does meets both. A row's time is the
time of a processor that the guest's thread used. The table has the median of each, the median of
the ratios of all pairs, and the ratio to Pyodide's build told to use int64, which does equal work.
"""

import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

# A name, what makes the data, what is measured, and how often.
ROWS = [
    ("array from a list of 1,000", "l = list(range(1000))", "np.array(l, **D)", 400),
    ("arange(1e6)", "", "np.arange(1_000_000, **D)", 12),
    ("a + b, 1e5", "a = np.arange(100_000, **D); b = a + 1", "a + b", 120),
    ("a * 3, 1e5", "a = np.arange(100_000, **D)", "a * 3", 120),
    ("a + b, 10", "a = np.arange(10, **D); b = a + 1", "a + b", 20_000),
    ("a ** 2, 1e5", "a = np.arange(100_000, **D)", "a ** 2", 100),
    ("a // 7, 1e5", "a = np.arange(1, 100_001, **D)", "a // 7", 20),
    ("a % 7, 1e5", "a = np.arange(1, 100_001, **D)", "a % 7", 20),
    ("a.sum(), 1e6", "a = np.arange(1_000_000, **D)", "a.sum(**D)", 30),
    ("sum of int32, 1e6", "a = np.arange(1_000_000, dtype='int32')", "a.sum(**D)", 30),
    ("sum of bool, 1e6", "a = np.arange(1_000_000) % 2 == 0", "a.sum(**D)", 30),
    ("cumsum, 1e5", "a = np.arange(100_000, **D)", "a.cumsum(**D)", 100),
    ("max, 1e6", "a = np.arange(1_000_000, **D)", "a.max()", 40),
    ("mean, 1e6", "a = np.arange(1_000_000, **D)", "a.mean()", 12),
    ("a > 5, 1e5", "a = np.arange(100_000, **D)", "a > 5", 200),
    ("a[mask], 1e5", "a = np.arange(100_000, **D); m = a % 2 == 0", "a[m]", 100),
    ("a[i], 1e5", "a = np.arange(100_000, **D); i = a[::-1].copy()", "a[i]", 60),
    ("a[argsort], 1e5", "a = np.arange(100_000, **D); i = np.argsort(-a)", "a[i]", 60),
    ("take, 1e5", "a = np.arange(100_000, **D); i = a[::-1].copy()", "np.take(a, i)", 60),
    ("f[i], floats, 1e5", "f = np.arange(1e5); i = np.arange(100_000, **D)", "f[i]", 60),
    ("sort, 1e5", "a = np.arange(100_000, **D) * 7919 % 100_003", "np.sort(a)", 12),
    ("argsort, 1e5", "a = np.arange(100_000, **D) * 7919 % 100_003", "np.argsort(a)", 6),
    ("unique, 1e5", "a = np.arange(100_000, **D) % 1000", "np.unique(a)", 10),
    ("bincount, 1e5", "a = np.arange(100_000, **D) % 1000", "np.bincount(a)", 60),
    ("repeat, 1e4", "a = np.arange(10_000, **D); n = np.arange(10_000, dtype=np.intp) % 9", "np.repeat(a, n)", 100),
    ("matmul 100x100", "a = np.arange(10_000, **D).reshape(100, 100)", "a @ a", 10),
    ("dot, 1e5", "a = np.arange(100_000, **D)", "a @ a", 60),
    ("to float, 1e5", "a = np.arange(100_000, **D)", "a.astype(float)", 100),
    ("from float, 1e5", "a = np.arange(1e5)", "a.astype(D.get('dtype', int))", 100),
    ("a + 1.5, 1e5", "a = np.arange(100_000, **D)", "a + 1.5", 60),
    ("f + g, floats, 1e5", "f = np.arange(1e5); g = f + 1", "f + g", 100),
    ("one element", "a = np.arange(1000, **D)", "a[7]", 40_000),
    ("a scalar times another", "a = np.arange(9, **D)[7]", "a * a", 40_000),
    ("where, 1e5", "a = np.arange(100_000, **D)", "np.where(a > 5, a, 0)", 60),
    ("histogram, 1e5", "a = np.arange(100_000, **D)", "np.histogram(a, 10)", 4),
]

GUEST = """
import sys
import numpy as np

ROWS = {rows!r}
D = dict(dtype="int64") if {wide!r} else {{}}
space = dict(np=np, D=D)
loops = []
for name, make, code, times in ROWS:
    own = dict(space)
    exec(make, own)
    exec(f"def loop():\\n for _ in range({{times}}): {{code}}", own)
    own["loop"]()
    loops.append(own["loop"])
print(np.dtype(int), flush=True)
for line in sys.stdin:
    loops[int(line)]()
    print("done", flush=True)
"""


def unchanged(wheels, into):
    """Copies the wheels. isolet does not change a numpy without one of the files that it changes."""
    for wheel in pathlib.Path(wheels).glob("*.whl"):
        if wheel.name.startswith("numpy-"):
            data = wheel.read_bytes()
            (into / wheel.name).write_bytes(data.replace(b"random/mtrand.c", b"random/mtranx.c"))
        else:
            shutil.copy(wheel, into)


class Subject:
    def __init__(self, command, wheels, script, wide):
        script.write_text(GUEST.format(rows=ROWS, wide=wide))
        line = [command, "run", "--timeout", "1h", "--with", "numpy", "--wheels", str(wheels)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen([*line, str(script)], **pipes)
        self.integer = self.process.stdout.readline().strip()

    def threads(self):
        """The nanoseconds that each thread of the process and its children has run."""
        found, pids = {}, [self.process.pid]
        while pids:
            for task in pathlib.Path(f"/proc/{pids.pop()}/task").glob("*"):
                try:
                    found[task] = int((task / "schedstat").read_text().split()[0])
                    pids += (task / "children").read_text().split()
                except OSError:
                    pass  # It has ended.
        return found

    def measure(self, row):
        before = self.threads()
        self.process.stdin.write(f"{row}\n")
        self.process.stdin.flush()
        if self.process.stdout.readline() != "done\n":
            raise SystemExit(f"the guest ended in row {row}")
        after = self.threads()
        return max(ns - before.get(task, 0) for task, ns in after.items()) / 1e6


def main(command, wheels, rounds=15):
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        narrow = directory / "narrow"
        narrow.mkdir()
        unchanged(wheels, narrow)
        subjects = [
            Subject(command, wheels, directory / "wide.py", False),
            Subject(command, narrow, directory / "narrow.py", False),
            Subject(command, narrow, directory / "told.py", True),
        ]
        if [subject.integer for subject in subjects] != ["int64", "int32", "int32"]:
            raise SystemExit("the two builds do not differ")
        times = [[[] for _ in ROWS] for _ in subjects]
        for number in range(-2, int(rounds)):
            for row in range(len(ROWS)):
                for subject in sorted(range(3), key=lambda it: (it + number) % 3):
                    took = subjects[subject].measure(row)
                    if number >= 0:
                        times[subject][row].append(took)
        for subject in subjects:
            subject.process.stdin.close()
            subject.process.wait(60)
    print("| row | changed, µs | as built | ratio | built, int64 | ratio |\n|-|-|-|-|-|-|")
    for row, (name, _, _, count) in enumerate(ROWS):
        wide, small, told = (times[subject][row] for subject in range(3))
        middle = [statistics.median(each) * 1000 / count for each in (wide, small, told)]
        ratios = [
            statistics.median(a / b for a, b in zip(wide, other, strict=True))
            for other in (small, told)
        ]
        print(
            f"| {name} | {middle[0]:.3g} | {middle[1]:.3g} | {ratios[0]:.2f} "
            f"| {middle[2]:.3g} | {ratios[1]:.2f} |"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
