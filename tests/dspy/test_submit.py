"""SUBMIT: the end of a run with a value, from anywhere in it."""

import unittest

from interpreter import Case, CodeExecutionError, FinalOutput, better

FIELDS = [{"name": "answer", "type": "str"}, {"name": "score", "type": "float"}, {"name": "notes"}]


class Default(Case):
    def submits(self, code, wanted, **options):
        got = self.shared(code, **options)
        self.assertIsInstance(got, FinalOutput)
        self.assertSame(got.output, wanted)

    def test_one_value_is_the_output(self):
        for value in ("text", "", "é 😀\n\"'", 0, 7, 2.5, True, False, [], {}, [1, ["a", None]], {"a": {"b": [1]}}):
            with self.subTest(repr(value)):
                self.submits(f"SUBMIT({value!r})", {"output": value})
                self.submits("SUBMIT(output=v)", {"output": value}, variables={"v": value})

    def test_none_is_a_value(self):
        self.submits("SUBMIT(None)", {"output": None})
        self.submits("SUBMIT({'a': None, 'b': [None]})", {"output": {"a": None, "b": [None]}})

    def test_what_json_does_not_have_becomes_what_it_has(self):
        self.submits("SUBMIT((1, (2,)))", {"output": [1, [2]]})
        self.submits("SUBMIT({1: 'a', None: 'b'})", {"output": {"1": "a", "null": "b"}})

    def test_wrong_arguments_are_refused_in_pythons_words(self):
        cases = [
            ("SUBMIT()", "SUBMIT() missing 1 required positional argument: 'output'"),
            ("SUBMIT(1, 2)", "SUBMIT() takes 1 positional argument but 2 were given"),
            ("SUBMIT(answer=1)", "SUBMIT() got an unexpected keyword argument 'answer'"),
            ("SUBMIT(1, output=2)", "SUBMIT() got multiple values for argument 'output'"),
        ]
        for code, wanted in cases:
            with self.subTest(code):
                said = self.fails(self.shared, code)
                self.assertTrue(said.startswith("TypeError: "), said)
                self.assertIn(wanted, said)
        self.submits("try:\n    SUBMIT()\nexcept TypeError:\n    SUBMIT('right')", {"output": "right"})

    @better("numbers pass through JavaScript's")
    def test_numbers_are_exact(self):
        for number in (2**53 + 1, 10**30, 1.0, -0.0):
            got = self.shared(f"SUBMIT([{number!r}])").output["output"]
            self.assertEqual(repr(got), repr([number]))

    @better("ends the session")
    def test_sets_become_lists(self):
        self.submits("SUBMIT({7})", {"output": [7]})
        self.submits("SUBMIT({'s': {frozenset()}})", {"output": {"s": [[]]}})

    @better("ends the session")
    def test_no_value_ends_the_session(self):
        values = [
            "object()",
            "lambda: 0",
            "b'\\xff'",
            "[1j]",
            "(i for i in [1])",
            "ValueError('x')",
            "float('nan')",
            "[float('inf')]",
            "{(1, 2): 3}",
            "type('C', (), {'__repr__': lambda self: 1 / 0})()",
            "__import__('datetime').datetime(2020, 1, 2)",
            "__import__('decimal').Decimal('1.5')",
            "(x := [], x.append(x))[0]",
            "'\\ud800'",
            "__import__('js').Object.new()",
            "__import__('js').undefined",
        ]
        for value in values:
            with self.subTest(value):
                try:
                    self.assertIsInstance(self.shared(f"SUBMIT({value})"), FinalOutput)
                except CodeExecutionError:
                    pass  # It may say that it cannot cross.
                self.assertAlive(self.shared)


class Fields(Case):
    def setUp(self):
        self.it = self.interpreter(output_fields=FIELDS)

    def submits(self, code, *wanted):
        got = self.it(code)
        self.assertIsInstance(got, FinalOutput)
        self.assertSame(got.output, dict(zip(("answer", "score", "notes"), wanted, strict=True)))
        self.assertEqual(list(got.output), ["answer", "score", "notes"])

    def test_fields_go_by_position_and_name(self):
        self.submits("SUBMIT('a', 2.5, [1])", "a", 2.5, [1])
        self.submits("SUBMIT(notes=None, score=0.5, answer='a')", "a", 0.5, None)
        self.submits("SUBMIT('a', notes={}, score=0.5)", "a", 0.5, {})
        self.submits("SUBMIT(**{'answer': 'a', 'score': 0.5, 'notes': ''})", "a", 0.5, "")

    def test_types_are_left_to_the_host(self):
        self.submits("SUBMIT(5, '0.5', True)", 5, "0.5", True)
        self.submits("SUBMIT(None, None, None)", None, None, None)

    def test_wrong_arguments_are_refused_in_pythons_words(self):
        cases = [
            ("SUBMIT()", "SUBMIT() missing 3 required positional arguments: 'answer', 'score', and 'notes'"),
            ("SUBMIT('a', 1)", "SUBMIT() missing 1 required positional argument: 'notes'"),
            ("SUBMIT('a', notes=1)", "SUBMIT() missing 1 required positional argument: 'score'"),
            ("SUBMIT(1, 2, 3, 4)", "SUBMIT() takes 3 positional arguments but 4 were given"),
            ("SUBMIT(1, 2, 3, nope=4)", "SUBMIT() got an unexpected keyword argument 'nope'"),
            ("SUBMIT(1, 2, 3, score=4)", "SUBMIT() got multiple values for argument 'score'"),
        ]
        for code, wanted in cases:
            with self.subTest(code):
                said = self.fails(self.it, code)
                self.assertTrue(said.startswith("TypeError: "), said)
                self.assertIn(wanted, said)
        self.submits("SUBMIT('right', 1.5, '')", "right", 1.5, "")

    def test_the_signature_is_seen(self):
        self.assertEqual(
            self.it("import inspect\nlist(inspect.signature(SUBMIT).parameters)"), ["answer", "score", "notes"]
        )

    def test_fields_are_replaced_between_runs(self):
        self.submits("SUBMIT('a', 0.5, '')", "a", 0.5, "")
        self.it.output_fields = [{"name": "verdict", "type": "bool"}]
        self.it._tools_registered = False
        self.assertEqual(self.it("SUBMIT(True)"), FinalOutput({"verdict": True}))
        self.assertIn("TypeError", self.fails(self.it, "SUBMIT(answer='a')"))

    def test_fields_come_to_an_interpreter_that_had_none(self):
        it = self.interpreter()
        self.assertEqual(it("SUBMIT(1)"), FinalOutput({"output": 1}))
        it.output_fields = FIELDS
        it._tools_registered = False
        self.assertEqual(it("SUBMIT('a', 1.5, 2)"), FinalOutput({"answer": "a", "score": 1.5, "notes": 2}))

    def test_fields_and_tools_go_together(self):
        it = self.interpreter(output_fields=FIELDS[:1], tools={"tool": lambda n: n * "a"})
        self.assertEqual(it("SUBMIT(tool(3))"), FinalOutput({"answer": "aaa"}))


class Places(Case):
    CODES = {
        "plain": "SUBMIT(1)",
        "after prints": "print('not the result')\nSUBMIT(1)",
        "before more": "SUBMIT(1)\nraise ValueError\n2",
        "function": "def f():\n    def g(): SUBMIT(1)\n    g()\nf()",
        "loop": "for i in range(10):\n    if i == 1: SUBMIT(i)",
        "comprehension": "[SUBMIT(i) for i in range(1, 5)]",
        "key": "sorted([1, 2], key=SUBMIT)",
        "callback": "list(map(SUBMIT, [1, 2]))",
        "class body": "class C:\n    SUBMIT(1)",
        "with": "import contextlib\nwith contextlib.suppress(Exception): SUBMIT(1)",
        "try": "try:\n    SUBMIT(1)\nexcept Exception:\n    SUBMIT(2)",
        "else": "try: pass\nexcept Exception: pass\nelse: SUBMIT(1)",
        "except": "try: 1 / 0\nexcept ZeroDivisionError: SUBMIT(1)",
        "finally": "try: pass\nfinally: SUBMIT(1)",
        "coroutine": "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    SUBMIT(1)\nawait f()",
        "exec": "exec('SUBMIT(1)')",
        "deep": "def f(n): SUBMIT(1) if n == 0 else f(n - 1)\nf(100)",
        "alias": "done = SUBMIT\ndone(1)",
        "expression": "x = 5 if SUBMIT(1) else 6",
        "generator": "def g():\n    yield 1\n    SUBMIT(1)\nlist(g())",
    }

    def test_the_run_ends_wherever_it_is(self):
        for name, code in self.CODES.items():
            with self.subTest(name):
                self.assertEqual(self.shared(code), FinalOutput({"output": 1}))
                self.assertAlive(self.shared)

    def test_finally_runs_on_the_way_out(self):
        self.shared("steps = []")
        got = self.shared("try:\n    SUBMIT(1)\n    steps.append('after')\nfinally:\n    steps.append('finally')")
        self.assertEqual(got, FinalOutput({"output": 1}))
        self.assertEqual(self.shared("steps"), ["finally"])

    def test_the_session_goes_on(self):
        self.assertEqual(self.shared("x = 3\nSUBMIT(x)\nx = 4"), FinalOutput({"output": 3}))
        self.assertEqual(self.shared("x"), 3)
        self.assertEqual(self.shared("print('printed')"), "printed\n")
        self.assertEqual(self.shared("SUBMIT(x + 1)"), FinalOutput({"output": 4}))

    def test_what_was_submitted_is_what_it_was_then(self):
        self.assertEqual(self.shared("x = [1]\ntry: SUBMIT(x)\nfinally: y = x"), FinalOutput({"output": [1]}))

    def test_a_caught_wrong_call_submits_nothing(self):
        self.assertEqual(self.shared("try: SUBMIT()\nexcept TypeError: pass\n'value'"), "value")


if __name__ == "__main__":
    unittest.main()
