"""DSPy's own modules on the interpreter: RLM with a scripted language model, its sub-calls and sub-agents included."""

import asyncio
import threading
import unittest
import warnings

import dspy
from dspy.utils import DummyLM
from interpreter import MODE, make


def triple(n: int) -> int:
    """Triples a number."""
    return 3 * n


class Sub:
    """The model that the code asks, as RLM's `sub_lm` and as the one behind its sub-agents."""

    def __init__(self):
        self.prompts = []
        self.lock = threading.Lock()

    def __call__(self, prompt=None, messages=None, **kwargs):
        text = prompt if messages is None else messages[-1]["content"]
        with self.lock:
            self.prompts.append(text)
        if messages is None:
            return [f"<{text.count('needle')} of {len(text)}>"]
        # A sub-agent asks in the form of its signature.
        return ["[[ ## answer ## ]]\nthe sub-agent's answer\n\n[[ ## completed ## ]]"]


def steps(*codes):
    """A model that plays these codes, one a turn."""
    return DummyLM([{"reasoning": f"step {n}", "code": f"```python\n{code}\n```"} for n, code in enumerate(codes)])


class Rlm(unittest.TestCase):
    def ask(self, signature, codes, inputs, **options):
        """Answers a question with these codes; returns the prediction and what each turn gave."""
        options.setdefault("sub_lm", Sub())
        # As the shim, isolet is what RLM takes by itself.
        factory = {} if MODE == "shim" else {"interpreter_factory": make}
        rlm = dspy.RLM(signature, **options, **factory)
        with dspy.context(lm=steps(*codes)):
            prediction = rlm(**inputs)
        return prediction, [entry["output"] for entry in prediction.trajectory]

    def test_a_question_about_a_long_text_is_answered(self):
        sub = Sub()
        context = "".join(('hay "é😀" ' * 1000) + ("needle\n" if n % 5 == 0 else "\n") for n in range(40))
        codes = [
            "print(type(context).__name__, len(context)); lines = context.splitlines()",
            "one = llm_query(lines[0])\nprint(one)",
            (
                "many = llm_query_batched(lines[:20])\ncount = sum(a.startswith('<1 ') for a in many)\n"
                "print(count, len(many))"
            ),
            "print(undefined)",
            "for line in lines\n    pass",
            "SUBMIT(answer='too early')",
            "SUBMIT(answer=f'{count} of 20', count=str(count))",
        ]
        prediction, outputs = self.ask(
            "context, query -> answer, count: int", codes, {"context": context, "query": "?"}, sub_lm=sub
        )
        self.assertEqual((prediction.answer, prediction.count), ("4 of 20", 4))
        self.assertEqual(outputs[0], f"str {len(context)}\n")
        self.assertEqual(outputs[1], f"<1 of {len(context.splitlines()[0])}>\n")
        self.assertEqual(outputs[2], "4 20\n")
        self.assertIn("NameError", outputs[3])
        self.assertIn("Invalid Python syntax", outputs[4])
        self.assertIn("SUBMIT() missing 1 required positional argument: 'count'", outputs[5])
        self.assertEqual(len(sub.prompts), 21)
        self.assertCountEqual(sub.prompts, [context.splitlines()[0], *context.splitlines()[:20]])

    def test_inputs_and_answers_of_every_shape_are_checked(self):
        codes = [
            "rows.append(1)",
            "print(len(rows), settings['on'], number + 1)",
            "SUBMIT(total='not a number', names=[], ok=True)",
            "SUBMIT(sum(r['n'] for r in rows), [r['name'] for r in rows], {})",
            "SUBMIT(total=sum(r['n'] for r in rows), names=[r['name'] for r in rows], ok=settings['on'])",
        ]
        inputs = {"rows": [{"n": n, "name": f"é{n}"} for n in range(3)], "settings": {"on": True}, "number": 4}
        signature = "rows: list[dict], settings: dict, number: int -> total: int, names: list[str], ok: bool"
        prediction, outputs = self.ask(signature, codes, inputs)
        self.assertEqual((prediction.total, prediction.names, prediction.ok), (3, ["é0", "é1", "é2"], True))
        self.assertEqual(outputs[1], "3 True 5\n")
        self.assertIn("[Type Error]", outputs[2])
        self.assertIn("[Type Error]", outputs[3])

    def test_tools_of_the_user_are_called(self):
        def lookup(key: str, default: str = "none") -> dict:
            """Looks a key up."""
            return {"key": key, "value": {"a": "b"}.get(key, default)}

        async def fetch(page: int) -> list:
            """Fetches a page."""
            await asyncio.sleep(0)
            return [page, {"next": page + 1}]

        def broken() -> str:
            """Fails."""
            raise KeyError("nothing there")

        codes = [
            "print(lookup('a'), lookup(key='x', default='y'), fetch(3)[1]['next'])",
            "broken()",
            "try: broken()\nexcept RuntimeError as e: print('caught', e)",
            "SUBMIT(lookup('a')['value'])",
        ]
        prediction, outputs = self.ask("query -> answer", codes, {"query": "?"}, tools=[lookup, fetch, broken])
        self.assertEqual(prediction.answer, "b")
        self.assertEqual(outputs[0], "{'key': 'a', 'value': 'b'} {'key': 'x', 'value': 'y'} 4\n")
        self.assertIn("KeyError", outputs[1])
        self.assertTrue(outputs[2].startswith("caught KeyError"), outputs[2])

    def test_sub_agents_are_built_in_the_guest_and_run_on_the_host(self):
        class Agents(dspy.BaseLM):
            """The sub-agents' model, which `dspy.Predict` asks through its adapter."""

            def __init__(self):
                super().__init__(model="scripted")
                self.sub = Sub()

            def __call__(self, *args, **kwargs):
                return self.sub(*args, **kwargs)

        codes = [
            "import dspy\nagent = dspy.Predict('question -> answer')",
            "print(agent(question='why?').answer)",
            "SUBMIT(dspy.Predict('question -> answer')(question='again?').answer)",
        ]
        prediction, outputs = self.ask("query -> answer", codes, {"query": "?"}, sub_lm=Agents())
        self.assertEqual(outputs[1], "the sub-agent's answer\n")
        self.assertEqual(prediction.answer, "the sub-agent's answer")

    def test_a_sub_agent_may_be_another_rlm(self):
        codes = [
            "import dspy\nx = 'outer'\nagent = dspy.RLM('context, query -> answer')",
            "got = agent(context=context[:3], query='?').answer\nprint(got, x)",
            "SUBMIT(got)",
        ]
        inner = steps("x = 'inner'\nprint(context)", "SUBMIT(context.upper() + x)")
        prediction, outputs = self.ask(
            "context, query -> answer", codes, {"context": "abcdef", "query": "?"}, sub_lm=inner
        )
        self.assertEqual(outputs[1], "ABCinner outer\n")
        self.assertEqual(prediction.answer, "ABCinner")

    def test_the_budget_of_calls_is_told_to_the_code(self):
        codes = ["llm_query_batched(['a'] * 3)", "llm_query_batched(['a'] * 3)", "SUBMIT('done')"]
        prediction, outputs = self.ask("query -> answer", codes, {"query": "?"}, max_llm_calls=5)
        self.assertIn("LLM call limit exceeded", outputs[1])
        self.assertEqual(prediction.answer, "done")

    def test_a_run_that_exits_is_one_turn(self):
        codes = [
            "import sys; sys.exit(1)",
            "raise KeyboardInterrupt",
            "b'\\xe9'.decode('ascii', 'replace')",
            "SUBMIT('done')",
        ]
        prediction, outputs = self.ask("query -> answer", codes, {"query": "?"})
        self.assertIn("SystemExit", outputs[0])
        self.assertIn("KeyboardInterrupt", outputs[1])
        self.assertEqual(prediction.answer, "done")

    def test_without_an_answer_the_last_turn_is_extracted(self):
        rlm = dspy.RLM("query -> answer", max_iters=2, interpreter_factory=make)
        answers = [{"reasoning": "r", "code": "print('looking')"}] * 2 + [{"answer": "extracted"}]
        with dspy.context(lm=DummyLM(answers)):
            prediction = rlm(query="?")
        self.assertEqual(prediction.answer, "extracted")
        self.assertEqual([entry["output"] for entry in prediction.trajectory], ["looking\n"] * 2)

    def test_questions_are_answered_side_by_side_and_asynchronously(self):
        rlm = dspy.RLM("n: int -> answer: int", interpreter_factory=make, sub_lm=Sub())

        async def ask(n):
            with dspy.context(lm=steps("x = n * n", "SUBMIT(x)")):
                return (await rlm.acall(n=n)).answer

        async def all_of_them():
            return await asyncio.gather(*(ask(n) for n in range(3)))

        self.assertEqual(asyncio.run(all_of_them()), [0, 1, 4])

    def test_the_configured_factory_is_taken(self):
        made = []
        rlm = dspy.RLM("query -> answer")
        with dspy.context(lm=steps("SUBMIT('done')"), interpreter_factory=lambda: made.append(make()) or made[-1]):
            self.assertEqual(rlm(query="?").answer, "done")
        self.assertEqual(len(made), 1)


# DSPy has announced that these will go.
if hasattr(dspy, "ProgramOfThought") and hasattr(dspy, "CodeAct"):

    class Older(unittest.TestCase):
        def setUp(self):
            filters = warnings.catch_warnings()
            filters.__enter__()
            self.addCleanup(filters.__exit__, None, None, None)
            warnings.simplefilter("ignore", DeprecationWarning)

        def test_a_program_of_thought_is_repaired_and_run(self):
            model = DummyLM(
                [
                    {"reasoning": "r", "generated_code": "```python\nresult = 6 *\n```"},
                    {"reasoning": "r", "generated_code": "```python\nresult = 6 * 7\nSUBMIT({'answer': result})\n```"},
                    {"reasoning": "r", "answer": "42"},
                ]
            )
            with dspy.context(lm=model):
                self.assertEqual(
                    dspy.ProgramOfThought("question -> answer", interpreter_factory=make)(question="?").answer, "42"
                )

        def test_code_that_acts_has_its_functions(self):
            model = DummyLM(
                [
                    {"generated_code": "```python\nprint(triple(n=14))\n```", "finished": True},
                    {"reasoning": "r", "answer": "42"},
                ]
            )
            with dspy.context(lm=model):
                act = dspy.CodeAct("question -> answer", tools=[triple], interpreter_factory=make)
                prediction = act(question="?")
            self.assertEqual(prediction.answer, "42")
            self.assertEqual(prediction.trajectory["code_output_0"], '"42\\n"')


if __name__ == "__main__":
    unittest.main()
