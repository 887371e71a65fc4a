"""The protocol of `cargo xtask bench` for the peers in Python, and what they have in common.

A line `SCENARIO COUNT` is answered with a line of JSON: a list of nanoseconds, {"skip": "why"} or {"error": "why"}.
The first line is what is measured, with its version, or {"error": "why it cannot be"}.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

COMPUTE = (Path(__file__).parent.parent / "compute.py").read_text()
MIB = 1 << 20
TEXT = ("All work and no play. " * 50_000)[:MIB]
MAKE_OUT = f"out = ('All work and no play. ' * 50_000)[:{MIB}]"
OUTPUT = "for _ in range(10_485): print('x' * 99)"
OUTPUT_BYTES = 1_048_500
TOOL_CALLS = 200
IDLE_SESSIONS = 5
BURST = 8
MAKE_SAVED = """x = 1
names = ['a', 'b', 'c']
table = {name: len(name) for name in names}
def double(value): return 2 * value
"""
MAKE_LARGE = "large = [bytes(1000) for _ in range(200_000)]; len(large)"


class Skip(Exception):
    """Says why a peer does not do a scenario."""


def timed(function, *arguments):
    """Returns nanoseconds and the result."""
    start = time.perf_counter_ns()
    result = function(*arguments)
    return time.perf_counter_ns() - start, result


def expect(condition, result):
    if not condition:
        raise AssertionError(f"unexpected result: {str(result)[:200]!r}")


class Peer:
    """A peer says how to open, use and close a session; the scenarios follow from it."""

    def open(self):
        raise NotImplementedError

    def close(self, session):
        raise NotImplementedError

    def run(self, session, code):
        """Returns the value of the last expression."""
        raise NotImplementedError

    def give(self, session, name, value, code):
        """Runs code that sees the value under the name."""
        raise NotImplementedError

    def printed(self, session, code):
        """Returns what a run has printed."""
        raise NotImplementedError

    def warm(self):
        """The session of the scenarios that measure a warm one."""
        if not hasattr(self, "_warm"):
            self._warm = self.open()
            self.run(self._warm, MAKE_OUT)
        return self._warm

    def session(self):
        return self.first_result(self.open)

    def first_result(self, open):
        def start():
            session = open()
            return session, self.run(session, "40+2")

        took, (session, result) = timed(start)
        self.close(session)
        expect(str(result) == "42", result)
        return took

    def open_new(self):
        """Opens a session of which nothing was kept ready, if there is a difference."""
        return self.open()

    def burst(self):
        def first_result():
            session = self.open_new()
            return session, self.run(session, "40+2")

        took, opened = timed(lambda: [first_result() for _ in range(BURST)])
        for session, result in opened:
            self.close(session)
            expect(str(result) == "42", result)
        return took // BURST

    def pool(self):
        raise Skip("keeps no interpreters ready")

    def copy(self, session):
        """Returns a second session that has all that this one has."""
        raise Skip("cannot copy a session")

    def original(self, make):
        """A session that is copied, which has run this code."""
        if not hasattr(self, "_originals"):
            self._originals = {}
        if make not in self._originals:
            self._originals[make] = self.open()
            self.run(self._originals[make], make)
        return self._originals[make]

    def fork(self, make="x = 1"):
        took, copy = timed(self.copy, self.original(make))
        self.close(copy)
        return took

    def fork_large(self):
        return self.fork(MAKE_LARGE)

    def fork_run(self):
        copy = self.copy(self.original("x = 1"))
        took, result = timed(self.run, copy, "x + 41")
        self.close(copy)
        expect(str(result) == "42", result)
        return took

    def fork_memory(self):
        """Bytes for each further idle copy, in the place of nanoseconds."""
        return self.memory_of(lambda: self.copy(self.original("x = 1")))

    def save_to(self, session, path):
        """Saves a session to a file, which is on disk when this returns."""
        raise Skip("cannot save a session")

    def restore_from(self, path):
        """Returns a session that goes on where the saved one was."""
        raise Skip("cannot save a session")

    def saved(self):
        if not hasattr(self, "_directory"):
            self._directory = tempfile.TemporaryDirectory()
        return Path(self._directory.name) / "session"

    def save(self):
        took, _ = timed(self.save_to, self.original(MAKE_SAVED), self.saved())
        return took

    def save_size(self):
        """Bytes of the file, in the place of nanoseconds."""
        self.save()
        return self.saved().stat().st_size

    def restore(self):
        self.save()

        def first_result():
            session = self.restore_from(self.saved())
            return session, self.run(session, "double(x) + 40")

        took, (session, result) = timed(first_result)
        self.close(session)
        expect(str(result) == "42", result)
        return took

    def scenario_run(self):
        took, result = timed(self.run, self.warm(), "40+2")
        expect(str(result) == "42", result)
        return took

    def compute(self):
        took, result = timed(self.run, self.warm(), COMPUTE)
        expect(str(result) == "19920111", result)
        return took

    def tool(self):
        took, _ = timed(self.run, self.warm(), f"for i in range({TOOL_CALLS}): f(i)")
        return took // TOOL_CALLS

    def value_in(self):
        took, result = timed(self.give, self.warm(), "given", TEXT, "len(given)")
        expect(str(result) == str(MIB), result)
        return took

    def value_out(self):
        took, result = timed(self.run, self.warm(), "out")
        expect(result == TEXT, result)
        return took

    def output(self):
        took, printed = timed(self.printed, self.warm(), OUTPUT)
        # Some leave the last line's end out.
        expect(len(printed) >= OUTPUT_BYTES - 1, printed)
        return took

    def memory(self):
        """Bytes for each further idle session, in the place of nanoseconds."""
        self.warm()
        return self.memory_of(self.open)

    def memory_of(self, open):
        sessions = [open()]
        before = settled_pss()
        for _ in range(IDLE_SESSIONS):
            sessions.append(open())
            self.run(sessions[-1], "40+2")
        after = settled_pss()
        for session in sessions:
            self.close(session)
        return (after - before) // IDLE_SESSIONS


def settled_pss():
    """Returns the first reading of two that are equal, or the last one: while a process ends, memory
    that it shares with others does not fully count as theirs, and spare ones are still to come.
    """
    last = pss(os.getpid())
    for _ in range(50):
        time.sleep(0.1)
        now = pss(os.getpid())
        if abs(now - last) < 64 << 10:
            break
        last = now
    return now


def pss(process):
    """Bytes that a process and all that it has started take, what is shared counted in proportion."""
    try:
        rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
        tasks = list(Path(f"/proc/{process}/task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return 0
    total = sum(int(line.split()[1]) << 10 for line in rollup.splitlines() if line.startswith("Pss:"))
    for task in tasks:
        try:
            children = (task / "children").read_text().split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += sum(pss(child) for child in children)
    return total


def serve(name, peer):
    """Answers until standard input ends. What a peer prints by itself goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    scenarios = {
        "session": peer.session,
        "pool": peer.pool,
        "run": peer.scenario_run,
        "compute": peer.compute,
        "tool": peer.tool,
        "value_in": peer.value_in,
        "value_out": peer.value_out,
        "output": peer.output,
        "memory": peer.memory,
        "fork": peer.fork,
        "fork_large": peer.fork_large,
        "fork_run": peer.fork_run,
        "fork_memory": peer.fork_memory,
        "save": peer.save,
        "save_size": peer.save_size,
        "restore": peer.restore,
    }

    def say(answer):
        print(json.dumps(answer), file=answers, flush=True)

    say(name)
    for line in sys.stdin:
        scenario, count = line.split()
        try:
            if scenario not in scenarios:
                raise Skip("not a scenario of this peer")
            say([scenarios[scenario]() for _ in range(int(count))])
        except Skip as skip:
            say({"skip": str(skip)})
        except Exception as error:
            say({"error": f"{type(error).__name__}: {error}"[:1000]})
