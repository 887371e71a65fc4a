"""The peers' side of `cargo xtask survival`: runs each program in a session of its own and reports what became of it.

A line of JSON, `{"code": "...", "packages": [...], "seconds": 3}`, is answered with `{"opened": true}`, then
`{"seconds": 1.2, "told": "..."}` when the run has ended, and `{"kept": true}` if the session's variable is still there.
A package that a peer does not have is answered with `{"skip": "why"}`. The first line names the peer.
"""

import json
import os
import sys
import time


# The pause before a program, in seconds. `benches/survival.rs` has the same.
PAUSE = 0.3


class Survivor:
    """A peer that runs programs under a limit of time."""

    packages = ()

    def open(self, seconds, packages):
        """Returns a session whose runs take at most this long, with these packages importable."""
        raise NotImplementedError

    def run(self, session, code):
        """Runs code and returns what the user is told: the text of an exception, or what was printed."""
        raise NotImplementedError

    def kept(self, session):
        """Whether the session has its variable."""
        return "the 42 that it kept" in self.run(session, "print('the', kept + 1, 'that it kept')")

    def close(self, session):
        """Ends a session."""


def told(error):
    return f"{type(error).__name__}: {error}"[:2000]


def survive(survivor, program, say):
    missing = [name for name in program["packages"] if name not in survivor.packages]
    if missing:
        return say({"skip": f"has no {' and no '.join(missing)}"})
    try:
        session = survivor.open(program["seconds"], program["packages"])
    except Exception as error:
        return say({"skip": f"cannot open a session: {told(error)}"})
    survivor.run(session, "kept = 41")
    time.sleep(PAUSE)
    say({"opened": True})
    start = time.monotonic()
    try:
        words = survivor.run(session, program["code"])
    except BaseException as error:
        words = told(error)
    # Without lone surrogates, which are no JSON.
    words = words[-2000:].encode(errors="replace").decode()
    say({"seconds": time.monotonic() - start, "told": words})
    try:
        kept = survivor.kept(session)
    except BaseException:
        kept = False
    say({"kept": kept})
    try:
        survivor.close(session)
    except BaseException as error:
        print(f"close: {told(error)}", file=sys.stderr)


def serve(name, survivor):
    """Answers until standard input ends. What a peer prints by itself goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(answer):
        print(json.dumps(answer), file=answers, flush=True)

    say(name)
    for line in sys.stdin:
        survive(survivor, json.loads(line), say)
