"""A rollout is scored twice: the second reward reads the journal, and asks nobody again."""

import isolet

ROLLOUT = """
import random
guesses = []
low, high = 0, 1000
while True:
    guess = (low + high) // 2 + random.choice([-1, 0, 1])
    guesses.append(guess)
    hint = ask(guess)
    if hint == "right":
        break
    low, high = (guess, high) if hint == "more" else (low, guess)
print("found", guess)
"""
asked = 0


def ask(guess: int) -> str:
    """The environment, of which each step costs time and money."""
    global asked
    asked += 1
    return "right" if guess == 777 else "more" if guess < 777 else "less"


with isolet.Sandbox(tools=[ask], seed=7) as sandbox:
    with sandbox.session(journal="rollout.journal") as session:
        first = session.run(ROLLOUT)
        print("first reward:", "found 777" in first.stdout)

    steps = asked
    # Days later, the reward counts the guesses, too.
    with sandbox.replay("rollout.journal") as session:
        again = session.go_on()
        assert again is not None
        assert again.stdout == first.stdout
        print("second reward:", len(session.eval("guesses")) == steps)
    print("asked again:", asked - steps)
