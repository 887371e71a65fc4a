"""A session as RLM uses it: tools anew for each question, every variable again at each turn, mistakes, an answer."""

import unittest

from interpreter import Case, FinalOutput

TURNS = 20


class Model:
    """What stands in for the model that the code asks: it answers by the words of the prompt."""

    def __init__(self, limit):
        self.limit = limit
        self.prompts = []

    def llm_query(self, prompt: str) -> str:
        """Query the LLM with a prompt string."""
        if not prompt:
            raise ValueError("prompt cannot be empty")
        if len(self.prompts) == self.limit:
            raise RuntimeError(f"LLM call limit exceeded: {self.limit}")
        self.prompts.append(prompt)
        return f"{len(prompt)} letters, {prompt.count('needle')} needles"

    def llm_query_batched(self, prompts: list) -> list:
        """Query prompts concurrently."""
        return [self.llm_query(prompt) for prompt in prompts]


class Questions(Case):
    def begin(self, it, model, fields):
        it.tools.update(llm_query=model.llm_query, llm_query_batched=model.llm_query_batched)
        it.output_fields = fields
        it._tools_registered = False

    def variables(self):
        page = 'some hay, "quoted" é 😀 and more hay\n' * 300
        pages = [page + ("needle\n" if n % 7 == 0 else "") + page for n in range(50)]
        settings = {"threshold": 0.5, "names": ["a", None], "deep": {"on": True}}
        return {
            "context": "".join(pages),
            "pages": pages,
            "settings": settings,
            "query": "How many needles?",
            "limit": None,
        }

    def question(self, it):
        model = Model(limit=1000)
        self.begin(it, model, [{"name": "answer", "type": "str"}, {"name": "count", "type": "int"}])
        given = self.variables()

        def turn(code):
            return it.execute(code, variables=dict(given))

        self.assertEqual(turn("print(type(context).__name__, len(context))"), f"str {len(given['context'])}\n")
        self.assertEqual(turn("counts = []\nlen(pages)"), 50)
        for number in range(TURNS - 6):
            code = (
                f"answer = llm_query(f'page {number}: {{pages[{number}]}}')\n"
                "counts.append(int(answer.split()[2]))\n"
                "pages.clear(); settings.clear(); context = query = None\n"
                "print(answer, len(counts))"
            )
            prompt = f"page {number}: {given['pages'][number]}"
            wanted = f"{len(prompt)} letters, {prompt.count('needle')} needles {number + 1}\n"
            self.assertEqual(turn(code), wanted)
        # What the last turn did to the variables is undone by the next.
        self.assertEqual(
            turn("[len(pages), settings, query, limit is None]"), [50, given["settings"], given["query"], True]
        )
        self.assertIn("NameError", self.fails(it, "print(coutns)", variables=dict(given)))
        with self.assertRaises(SyntaxError):
            turn("for page in pages\n    print(page)")
        self.assertIn("ValueError: prompt cannot be empty", self.fails(it, "llm_query('')", variables=dict(given)))
        rest = 50 - (TURNS - 6)
        code = (
            f"for a in llm_query_batched(pages[{TURNS - 6}:]): counts.append(int(a.split()[2]))\n"
            f"print(len(counts), sum(counts))"
        )
        self.assertEqual(turn(code), "50 8\n")
        got = turn("SUBMIT(answer=f'{sum(counts)} needles', count=sum(counts))")
        self.assertEqual(got, FinalOutput({"answer": "8 needles", "count": 8}))
        self.assertEqual(len(model.prompts), TURNS - 6 + rest)
        self.assertEqual(model.prompts[-rest:], given["pages"][-rest:])

    def test_a_question_is_answered_in_twenty_turns(self):
        self.question(self.interpreter())

    def test_one_session_answers_one_question_after_the_other(self):
        it = self.interpreter()
        self.question(it)
        self.question(it)
        other = Model(limit=2)
        self.begin(it, other, [{"name": "verdict", "type": "bool"}])
        self.assertEqual(it("[llm_query('one'), llm_query('two')]"), ["3 letters, 0 needles"] * 2)
        self.assertIn("LLM call limit exceeded", self.fails(it, "llm_query('three')"))
        self.assertEqual(it("SUBMIT(verdict=len(counts) == 50)"), FinalOutput({"verdict": True}))

    def test_a_megabyte_comes_again_at_every_turn(self):
        it = self.interpreter()
        text = "0123456789é" * 100_000
        for number in range(TURNS):
            got = it(f"print(len(v), len(w), v[{number}])", variables={"v": text, "w": [text[: 1000 * number]] * 10})
            self.assertEqual(got, f"{len(text)} 10 {text[number]}\n")


if __name__ == "__main__":
    unittest.main()
