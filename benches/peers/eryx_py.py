"""eryx: CPython on wasmtime, in this process.

A run's value is a variable, and a function of the host is awaited.
"""

import ast
from importlib.metadata import version

import eryx
import peer


def f(x):
    return x


class Eryx(peer.Peer):
    def __init__(self):
        self.prepared = {}

    def open(self):
        return eryx.Session(callbacks=[{"name": "f", "fn": f, "description": "Returns what it is given."}])

    def close(self, session):
        pass  # it ends with its last reference

    def prepare(self, code):
        """Binds the value of the last expression to the variable that a run returns."""
        if code not in self.prepared:
            parsed = ast.parse(code)
            if isinstance(parsed.body[-1], ast.Expr):
                parsed.body[-1] = ast.Assign([ast.Name("result")], parsed.body[-1].value, lineno=1)
            self.prepared[code] = ast.unparse(parsed)
        return self.prepared[code]

    def run(self, session, code):
        return session.execute(self.prepare(code)).result

    def tool(self):
        code = f"for i in range({peer.TOOL_CALLS}): await f(x=i)"
        took, _ = peer.timed(self.warm().execute, code)
        return took // peer.TOOL_CALLS

    def give(self, session, name, value, code):
        raise peer.Skip("has no variables from outside")

    def printed(self, session, code):
        return session.execute(code).stdout_text

    def save_to(self, session, path):
        with open(path, "wb") as file:
            file.write(session.snapshot_state())
            file.flush()
            peer.os.fdatasync(file.fileno())

    def restore_from(self, path):
        session = self.open()
        session.restore_state(path.read_bytes())
        return session


if __name__ == "__main__":
    peer.serve(f"pyeryx {version('pyeryx')}", Eryx())
