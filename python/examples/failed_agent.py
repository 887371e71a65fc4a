"""An agent fails at its call 212: its journal shows it there, with its variables, anywhere."""

import isolet

AGENT = """
import random
random.seed(7)

def plan(shelf):
    counted = 0
    for box in range(20):
        found = look_up(shelf, box)
        counted += int(found)
    return counted

totals = [plan(shelf) for shelf in range(50)]
"""


def look_up(shelf: int, box: int) -> str:
    """What the warehouse says of a box."""
    return "n/a" if (shelf, box) == (10, 11) else str(shelf + box)


execution = isolet.run(AGENT, tools=[look_up], journal="agent.journal")
print("failed:", execution.error.type if execution.error else None)

# On another machine, without the warehouse: the journal is the bug report.
with isolet.Sandbox() as sandbox, sandbox.replay("agent.journal", until_call=212) as session:
    session.go_on()
    stopped = session.bind_locals()
    assert stopped is not None
    print("stopped in", stopped.function, "with", ", ".join(stopped.names))
    print("shelf, box:", session.eval("[shelf, box]"))
    print("the answer before:", session.eval("found"))
