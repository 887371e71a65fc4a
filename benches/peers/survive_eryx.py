"""eryx, CPython on wasmtime in this process, as a subject of `cargo xtask survival`."""

from importlib.metadata import version

import eryx
import survival


class Eryx(survival.Survivor):
    def open(self, seconds, packages):
        return eryx.Session(execution_timeout_ms=int(seconds * 1000))

    def run(self, session, code):
        result = session.execute(code)
        return result.stdout_text + result.stderr_text

    def kept(self, session):
        return session.execute("result = kept + 1").result == 42


if __name__ == "__main__":
    survival.serve(f"eryx {version('pyeryx')}", Eryx())
