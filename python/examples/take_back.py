"""An agent that takes back a bad step: each step runs in a copy, which is kept if it was good."""

import isolet

# What a language model might write, one step at a time.
STEPS = [
    "rows = [line.split(',') for line in text.splitlines()]",
    "header = rows.pop(0); rows.clear()  # oops",
    "header, *rows = rows",
    "totals = {name: int(count) * float(price) for name, count, price in rows}",
    "totals = {name: int(count) * int(price) for name, count, price in rows}",
    "best = max(totals, key=totals.get)",
]
CHECK = "len(rows) >= 3"
TEXT = "name,count,price\ntea,3,2.5\ncoffee,2,4.25\ncake,5,3.5\n"

with isolet.Sandbox(forkable=2) as sandbox:
    session = sandbox.session(inputs={"text": TEXT})
    for number, step in enumerate(STEPS, 1):
        attempt = session.fork()
        result = attempt.run(step)
        if result.ok and attempt.eval(CHECK):
            session.close()
            session = attempt
            print(f"step {number}: kept")
        else:
            attempt.close()
            reason = result.error.type if result.error else f"not {CHECK}"
            print(f"step {number}: taken back, {reason}")
    print(session.eval("f'{best}: {totals[best]}'"))
