"""DSPy's `PythonInterpreter` on the real Deno, which runs Pyodide.

Its runner imports a module by HTTP and Pyodide from npm's registry, once. ISOLET_BENCH_DENO_RUNNER may name a copy of
the runner that needs neither; DENO_DIR is Deno's cache, as ever.
"""

import os
from importlib.metadata import version

import dspy
import peer
from dspy.primitives import python_interpreter

RUNNER = os.environ.get("ISOLET_BENCH_DENO_RUNNER")


def f(x):
    return x


class Interpreter(dspy.PythonInterpreter):
    def _get_runner_path(self):
        return RUNNER or super()._get_runner_path()


class DSPy(peer.Peer):
    def burst(self):
        raise peer.Skip("each takes as long as `session`, which is seconds")

    def open(self):
        session = Interpreter(tools={"f": f})
        try:
            session.start()
        except dspy.CodeInterpreterError as error:
            session.shutdown()
            hint = "ISOLET_BENCH_DENO_RUNNER may name another"
            raise RuntimeError(f"Deno cannot load DSPy's runner, {hint}: {error}") from error
        return session

    def close(self, session):
        session.shutdown()

    def run(self, session, code):
        return session(code)

    def give(self, session, name, value, code):
        return session(code, variables={name: value})

    def printed(self, session, code):
        return session(code)


def deno():
    numbers = python_interpreter._get_deno_version(python_interpreter._find_deno_executable())
    return ".".join(map(str, numbers or ("?",)))


if __name__ == "__main__":
    patched = ", its runner a patched copy" if RUNNER else ""
    peer.serve(f"DSPy {version('dspy')} on Deno {deno()}{patched}", DSPy())
