"""What a node keeps of sessions that have ended: nothing.

`ISOLET_TEST_DROPPED` says how many sessions there are at once. What it measures is printed.
"""

from __future__ import annotations

import os

from fleet import Client, in_threads, nodes, until
from processes import descriptors, own_pss, threads, tree

SESSIONS = int(os.environ.get("ISOLET_TEST_DROPPED", "100"))
WINDOW = 5
"""How many rounds in a row may not grow."""
ROUNDS = 30
"""The most rounds until then: what the allocators keep grows by steps at first."""
SLACK = (2 << 20) + WINDOW * SESSIONS * (2 << 10)
"""How many bytes a window may grow: 2 MiB, and 2 KiB for each session."""


def test_sessions_created_and_dropped_leave_nothing(capsys):
    with nodes("n1", options=("--max-sessions", str(SESSIONS))) as fleet:
        process = fleet["n1"].process.pid

        def round_of(count: int) -> None:
            with Client(fleet["n1"].address) as client:

                def use(number: int) -> str:
                    session = client.create(inputs={"number": number})["id"]
                    answer = client.run(session, "print(number)")
                    assert answer.json()["stdout"] == f"{number}\n", answer
                    return session

                def drop(session: str) -> None:
                    assert client.ask("DELETE", f"/v1/sessions/{session}").status == 204

                in_threads(drop, in_threads(use, range(count)))

        def is_still() -> bool:
            """Whether there is the node, what sessions are copied from, and two spare copies."""
            return len(tree(process)) == 4

        # The first sessions are no copies.
        until(lambda: round_of(1) or is_still())
        # From now on it has the threads that so many sessions at once need.
        round_of(SESSIONS)
        until(is_still)
        before = descriptors(process), threads(process)
        memory: list[int] = []

        def has_settled() -> bool:
            earlier, last = memory[:-WINDOW], memory[-WINDOW:]
            return bool(earlier) and max(last) <= max(earlier) + SLACK

        while not has_settled() and len(memory) < ROUNDS:
            round_of(SESSIONS)
            until(is_still)
            # Those of the last sessions are about to end, and some that stay start late.
            until(lambda: threads(process) <= before[1] + 2)
            memory.append(own_pss([process]))
        until(lambda: descriptors(process) <= before[0])
        with capsys.disabled():
            shown = " ".join(f"{size / 2**20:.1f}" for size in memory)
            print(f"\n{SESSIONS} sessions, {before} descriptors and threads; MiB: {shown}", end="")
        assert has_settled(), shown
