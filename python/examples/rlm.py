"""A recursive language model: answers a question about a text that no model could read at once.

The text is a variable of the sandbox. The root model never sees it: it writes Python, sees what
that prints, and writes the next piece. Its code hands parts of the text to a second model, by the
function `llm_query`, many at the same time. `SUBMIT` ends it with the answer.

Both models are scripted, so that the example runs without a key or a network. To use real ones,
replace the bodies of `root_model` and `llm_query`. The loop in `main` stays as it is.

    pip install target/wheels/isolet-*.whl    # of `cargo xtask wheel`, until it is published
    python examples/rlm.py
"""

from __future__ import annotations

import asyncio
import re

import isolet

QUESTION = "How many crates of tea were lost on the way, and which letters say so?"

MAX_TURNS = 10
MAX_SHOWN = 2_000
"""The most characters of a turn's output that the root model sees."""
MAX_PROMPT = 20_000
"""The most characters that the second model takes."""

# What the text hides: the number of a letter, a sentence of it, and what a reader learns from it.
FACTS = [
    (211, "The Heron struck the bar at night. Forty crates of tea went down with her.", 40),
    (1042, "Of the tea aboard the Wren, three dozen crates came ashore wet and worthless.", 36),
    (1777, "Fire took the shed by the mole, and a hundred and twelve crates of tea.", 112),
    (2650, "While the watch of the Plover slept, a dozen crates of her tea were stolen.", 12),
]


def write_letters() -> str:
    """Writes 3,000 letters of a merchant, more than 1 MiB, always the same ones."""
    ships = ["Heron", "Wren", "Plover", "Gannet", "Tern", "Curlew", "Petrel"]
    goods = ["tea", "wool", "salt", "copper", "timber", "pepper"]
    ports = ["Bristol", "Lisbon", "Genoa", "Riga", "Bergen"]
    hidden = {number: sentence for number, sentence, _ in FACTS}
    letters: list[str] = []
    for number in range(3_000):
        sentences = [
            f"The {ships[(number * 3 + day) % 7]} sailed for {ports[(number + day * 2) % 5]} with "
            f"{(number * 17 + day * 29) % 90 + 10} crates of {goods[(number + day) % 6]}, all well."
            for day in range(5)
        ]
        if number in hidden:
            sentences.insert(3, hidden[number])
        letters.append(f"Letter {number}. {' '.join(sentences)} Your obedient servant.")
    return "\n\n".join(letters)


class Model:
    """The second model, which reads a part of the text. Scripted: it knows the sentences."""

    def __init__(self) -> None:
        self.calls = 0
        self.most_at_once = 0
        self._at_once = 0

    async def llm_query(self, prompt: str) -> str:
        """Asks a language model. The prompt has to contain all that it needs to know."""
        if len(prompt) > MAX_PROMPT:
            raise ValueError(f"the prompt has {len(prompt)} characters, the most is {MAX_PROMPT}")
        self.calls += 1
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        # A real model takes its time. The other calls go on meanwhile.
        await asyncio.sleep(0.02)
        self._at_once -= 1
        found = [f"{number}: {count}" for number, sentence, count in FACTS if sentence in prompt]
        return "\n".join(found) or "none"


# What the root model writes, turn by turn. The second piece has a mistake, as happens.
SCRIPT = [
    """\
print(type(context).__name__, len(context))
print(context[:200])""",
    """\
answer = llm_query(question + "\\n\\n" + context)""",
    """\
letters = context.split("\\n\\n")
parts, size = [[]], 0
for letter in letters:
    if size + len(letter) > 15_000:
        parts.append([])
        size = 0
    parts[-1].append(letter)
    size += len(letter) + 2
task = "Crates of tea that were lost, as lines `LETTER: CRATES`, or `none`:\\n\\n"
answers = llm_query.map(task + "\\n\\n".join(part) for part in parts)
found = [line for answer in answers if answer != "none" for line in answer.splitlines()]
print(len(letters), "letters in", len(parts), "parts")
print(found)""",
    """\
import asyncio
numbers = [int(line.split(":")[0]) for line in found]
again = await asyncio.gather(*(llm_query.aio(task + letters[number]) for number in numbers))
print("confirmed:", again == found)
lost = [int(line.split(":")[1]) for line in again]""",
    """\
SUBMIT(crates=sum(lost), letters=numbers)""",
]


def root_model(question: str, turns: list[tuple[str, str]]) -> str:
    """Writes the next code. Scripted: a real model would get the question and the turns so far."""
    assert "crates" in question
    if len(turns) == 2:
        # It has seen that its prompt was too long, and goes on in parts.
        assert re.search(r"ValueError: the prompt has \d+ characters, the most is", turns[-1][1])
    return SCRIPT[len(turns)]


def main() -> None:
    text = write_letters()
    assert len(text) >= 1 << 20
    model = Model()
    turns: list[tuple[str, str]] = []
    sandbox = isolet.Sandbox(
        tools=[model.llm_query],
        submit={"crates": int, "letters": list[int]},
        # The time in which the code waits for `llm_query` has a limit of its own.
        limits=isolet.Limits(run_time=30, host_time=600),
    )
    with sandbox.session(inputs={"context": text, "question": QUESTION}) as session:
        for turn in range(MAX_TURNS):
            code = root_model(QUESTION, turns)
            execution = session.run(code)
            shown = execution.text[:MAX_SHOWN]
            turns.append((code, shown))
            print(f"--- turn {turn}\n{code}\n>>>\n{shown}")
            if execution.status == "submitted":
                break
        else:
            raise SystemExit(f"there is no answer after {MAX_TURNS} turns")

    answer = execution.value
    print(f"{QUESTION}\n{answer['crates']} crates, letters {answer['letters']}")
    print(f"{model.calls} calls of llm_query")
    assert answer == {
        "crates": sum(count for *_, count in FACTS),
        "letters": [number for number, *_ in FACTS],
    }
    assert model.most_at_once > 1, "the calls were made one by one"


if __name__ == "__main__":
    main()
