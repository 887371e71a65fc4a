"""Plain CPython, a process for each session, over pipes: the floor. It isolates nothing."""

import pickle
import platform
import subprocess
import sys

import peer

# A message is a pickle: ("run", code, variables) in, ("call", x) out and its answer in,
# ("done", value, printed) out.
GUEST = """
import ast, io, pickle, sys
source, sink = sys.stdin.buffer, sys.stdout.buffer

def say(message):
    pickle.dump(message, sink, 5)
    sink.flush()

def f(x):
    say(("call", x))
    return pickle.load(source)

names = {"f": f}
while True:
    try:
        code, variables = pickle.load(source)
    except EOFError:
        break
    names.update(variables)
    printed = sys.stdout = io.StringIO()
    body = ast.parse(code).body
    value = None
    last = ast.Expression(body.pop().value) if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "<cell>", "exec"), names)
    if last:
        value = eval(compile(last, "<cell>", "eval"), names)
    say(("done", value, printed.getvalue()))
"""


# A copy that nobody talks to: the floor is the system call alone.
FORK = """
import os, time
def fork():
    start = time.perf_counter_ns()
    copy = os.fork()
    if not copy:
        os._exit(0)
    took = time.perf_counter_ns() - start
    os.waitpid(copy, 0)
    return took
"""


class CPython(peer.Peer):
    def open(self):
        return subprocess.Popen([sys.executable, "-c", GUEST], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def close(self, session):
        session.stdin.close()
        session.stdout.close()
        session.wait()

    def fork(self, make="x = 1"):
        return self.run(self.original(make + FORK), "fork()")

    def execute(self, session, code, variables):
        pickle.dump((code, variables), session.stdin, 5)
        session.stdin.flush()
        while True:
            message = pickle.load(session.stdout)
            if message[0] == "done":
                return message[1:]
            pickle.dump(message[1], session.stdin, 5)
            session.stdin.flush()

    def run(self, session, code):
        return self.execute(session, code, {})[0]

    def give(self, session, name, value, code):
        return self.execute(session, code, {name: value})[0]

    def printed(self, session, code):
        return self.execute(session, code, {})[1]


if __name__ == "__main__":
    peer.serve(f"CPython {platform.python_version()}", CPython())
