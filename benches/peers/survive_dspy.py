"""DSPy's `PythonInterpreter` on Deno as a subject of `cargo xtask survival`. It has no limit of time."""

from importlib.metadata import version

import dspy_deno
import survival


class DSPy(survival.Survivor):
    def open(self, seconds, packages):
        return dspy_deno.DSPy().open()

    def run(self, session, code):
        return str(session(code))

    def close(self, session):
        session.shutdown()


if __name__ == "__main__":
    patched = ", its runner a patched copy" if dspy_deno.RUNNER else ""
    survival.serve(f"DSPy {version('dspy')} on Deno {dspy_deno.deno()}{patched}", DSPy())
