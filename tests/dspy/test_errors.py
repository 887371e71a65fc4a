"""Code that fails: what DSPy says of it, and that the session goes on."""

import unittest

from interpreter import Case, CodeExecutionError, CodeInterpreterError, better


class Exceptions(Case):
    def test_an_exception_is_told_by_its_class_and_arguments(self):
        cases = [
            ("raise ValueError(7)", "ValueError: [7]"),
            ("raise TypeError('a', 1)", "TypeError: ['a', 1]"),
            ("raise RuntimeError('é 😀\\n\"quoted\"')", "RuntimeError: ['é 😀\\n\"quoted\"']"),
            ("nope", "NameError: [\"name 'nope' is not defined\"]"),
            ("(1).nope", "AttributeError: [\"'int' object has no attribute 'nope'\"]"),
            ("[][1]", "IndexError: ['list index out of range']"),
            ("{}['k']", "KeyError: ['k']"),
            ("{}[5]", "KeyError: [5]"),
            ("1 / 0", "ZeroDivisionError: ['division by zero']"),
            ("assert 1 == 2, 'no'", "AssertionError: ['no']"),
            ("raise ValueError('a', {'k': [1, None]}, 2.5, True)", "ValueError: ['a', {'k': [1, None]}, 2.5, True]"),
            ("raise ValueError(('t', 1))", "ValueError: [['t', 1]]"),
            ("class Own(Exception): pass\nraise Own('x', 2)", "Own: ['x', 2]"),
            ("class Outer:\n    class Inner(Exception): pass\nraise Outer.Inner('x')", "Outer.Inner: ['x']"),
            ("import json; json.JSONDecodeError('m', 'd', 0).args and json.loads('{')", "JSONDecodeError: ['Expecting"),
            ("raise ValueError('b') from KeyError('a')", "ValueError: ['b']"),
            ("try: 1 / 0\nexcept ZeroDivisionError: raise KeyError('in')", "KeyError: ['in']"),
            ("import nosuchmodule", "ModuleNotFoundError: [\"No module named 'nosuchmodule'"),
        ]
        for code, wanted in cases:
            with self.subTest(code):
                said = self.fails(self.shared, code)
                self.assertEqual(said[: len(wanted)], wanted)

    def test_every_mapped_class_is_one_the_code_can_repair(self):
        for name in (
            "NameError",
            "TypeError",
            "ValueError",
            "AttributeError",
            "IndexError",
            "KeyError",
            "RuntimeError",
        ):
            with self.subTest(name):
                self.assertEqual(self.fails(self.shared, f"raise {name}('x')"), f"{name}: ['x']")

    def test_an_exception_without_arguments_is_told_by_its_class(self):
        for name in ("ValueError", "RuntimeError", "ZeroDivisionError", "Exception"):
            with self.subTest(name):
                self.assertRegex(self.fails(self.shared, f"raise {name}"), f"^{name}: ")

    @better("an empty text")
    def test_an_exception_without_arguments_comes_with_its_traceback(self):
        said = self.fails(self.shared, "def f():\n    raise ValueError\nf()")
        self.assertRegex(said, "^ValueError: Traceback")
        self.assertIn("line 2, in f", said)
        self.assertEqual(said.count("File "), 2, "it shows frames that are not the guest's")

    def test_names_bound_before_the_failure_stay(self):
        self.fails(self.shared, "kept = [1]\nkept.append(2)\n1 / 0\nkept.append(3)")
        self.assertEqual(self.shared("kept"), [1, 2])

    def test_failures_in_awaited_code_are_the_same(self):
        code = "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    raise ValueError(7)\nawait f()"
        self.assertEqual(self.fails(self.shared, code), "ValueError: [7]")

    def test_a_failure_of_any_kind_is_followed_by_an_honest_run(self):
        for number in range(20):
            self.fails(self.shared, f"print('noise')\nraise ValueError({number})")
            self.assertEqual(self.shared(f"print({number})"), f"{number}\n")


class Syntax(Case):
    def test_a_syntax_error_is_told_as_one(self):
        for code in (
            "def f(:",
            "x = ",
            "if True",
            "'open",
            "print 'x'",
            "return 5",
            "x = (1,",
            "compile('def', 'x', 'exec')",
        ):
            with self.subTest(code):
                with self.assertRaisesRegex(SyntaxError, "Invalid Python syntax"):
                    self.shared(code)
                self.assertAlive(self.shared)

    @better("an empty text")
    def test_a_syntax_error_says_where(self):
        with self.assertRaises(SyntaxError) as caught:
            self.shared("x = 1\ny = (2,\nprint(x))]")
        self.assertIn("line 3", str(caught.exception))
        self.assertIn("print(x))]", str(caught.exception))

    def test_code_that_does_not_compile_does_nothing(self):
        with self.assertRaises(SyntaxError):
            self.shared("done = 1\ndef f(:")
        self.assertIn("NameError", self.fails(self.shared, "done"))

    def test_wrong_indentation_can_be_repaired(self):
        for code in ("if True:\nx = 1", "x = 1\n  y = 2"):
            with self.subTest(code):
                try:
                    self.shared(code)
                    self.fail("nothing was raised")
                except (SyntaxError, CodeExecutionError) as error:
                    self.assertRegex(str(error), "indent")
                self.assertAlive(self.shared)


class Exits(Case):
    def test_exits_and_interrupts_are_failures_like_others(self):
        cases = [
            ("import sys; sys.exit(3)", "SystemExit: [3]"),
            ("import sys; sys.exit('bad input')", "SystemExit: ['bad input']"),
            ("quit(4)", "SystemExit: [4]"),
            ("import sys; sys.exit()", "SystemExit: "),
            ("raise SystemExit", "SystemExit: "),
            ("raise KeyboardInterrupt", "KeyboardInterrupt: "),
            ("raise GeneratorExit", "GeneratorExit: "),
            ("import asyncio; raise asyncio.CancelledError", "CancelledError: "),
            ("class B(BaseException): pass\nraise B('x', 1)", "B: ['x', 1]"),
            ("class K(KeyboardInterrupt): pass\nraise K('x')", "K: ['x']"),
            ("class S(SystemExit): pass\nraise S(5)", "S: [5]"),
        ]
        for code, wanted in cases:
            with self.subTest(code):
                self.shared("kept = 1")
                self.assertTrue(self.fails(self.shared, code).startswith(wanted))
                self.assertEqual(self.shared("kept"), 1)

    def test_exits_from_coroutines_and_finally_are_too(self):
        code = "import asyncio, sys\nasync def f():\n    await asyncio.sleep(0)\n    sys.exit(3)\nawait f()"
        self.assertTrue(self.fails(self.shared, code).startswith("SystemExit"))
        code = "import sys\ntry: 1 / 0\nfinally: sys.exit(3)"
        self.assertTrue(self.fails(self.shared, code).startswith("SystemExit"))

    def test_a_caught_exit_is_none(self):
        self.assertEqual(self.shared("import sys\ntry: sys.exit(3)\nexcept SystemExit as e: x = e.code\nx"), 3)

    def test_an_end_of_the_process_is_told(self):
        for code in ("import os; os._exit(3)", "import os; os.abort()"):
            with self.subTest(code):
                it = self.interpreter()
                with self.assertRaises(CodeInterpreterError):
                    it(code)


class Odd(Case):
    def test_a_class_with_the_name_of_dspys_own_is_the_guests(self):
        said = self.fails(self.shared, "class CodeInterpreterError(Exception): pass\nraise CodeInterpreterError('x')")
        self.assertEqual(said, "CodeInterpreterError: ['x']")
        said = self.fails(self.shared, "class CodeInterpreterError(BaseException): pass\nraise CodeInterpreterError")
        self.assertTrue(said.startswith("CodeInterpreterError"))

    @better("ends the session")
    def test_arguments_without_json_end_nothing(self):
        cases = {
            "b'\\xff'.decode()": "UnicodeDecodeError",
            "raise ValueError(b'x')": "ValueError",
            "raise ValueError(object())": "ValueError",
            "raise ValueError({1, 2})": "ValueError",
            "raise ValueError(1j)": "ValueError",
            "raise ValueError(float('nan'))": "ValueError",
            "raise ValueError(2 ** 70, 1.0)": "ValueError: \\[1180591620717411303424, 1.0\\]",
            "raise ValueError('\\ud800')": "ValueError",
            "raise ValueError({(1, 2): 3})": "ValueError",
            "x = []\nx.append(x)\nraise ValueError(x)": "ValueError",
            "x = []\nfor _ in range(5000): x = [x]\nraise ValueError(x)": "ValueError",
            "raise ExceptionGroup('g', [ValueError(1)])": "ExceptionGroup",
            "raise BaseExceptionGroup('g', [KeyboardInterrupt()])": "BaseExceptionGroup",
            "raise ValueError(ValueError(ValueError(1)))": "ValueError",
            "class E(Exception):\n    args = property(lambda self: 1 / 0)\nraise E('x')": "E",
            "class E(Exception):\n    args = 5\nraise E('x')": "E",
            "class R:\n    __repr__ = __str__ = lambda self: 1 / 0\nraise ValueError(R())": "ValueError",
            "import js; js.eval('throw new Error(\"thrown\")')": "JsException",
            "import js; js.eval('throw 5')": "",
            "import js; js.nope()": "",
            "import js; js.JSON.parse('{')": "JsException",
        }
        for code, wanted in cases.items():
            with self.subTest(code):
                self.assertRegex(self.fails(self.shared, code), f"^{wanted}")

    def test_an_exception_that_cannot_be_shown_is_told(self):
        code = "class E(Exception):\n    __str__ = __repr__ = lambda self: 1 / 0\nraise E('x')"
        self.assertTrue(self.fails(self.shared, code).startswith("E"))

    def test_recursion_without_end_is_a_failure_like_others(self):
        said = self.fails(self.shared, "def f(n): return f(n + 1)\nf(0)")
        self.assertTrue(said.startswith("RecursionError"), said)

    @better("ends the session")
    def test_recursion_through_the_interpreter_itself_is_too(self):
        for code in (
            "class C:\n    def __getattr__(self, name): return getattr(self, name + 'x')\nC().x",
            "class C:\n    def __repr__(self): return repr(self)\nrepr(C())",
        ):
            with self.subTest(code):
                said = self.fails(self.shared, code)
                self.assertTrue(said.startswith("RecursionError"), said)

    def test_a_huge_message_is_told(self):
        said = self.fails(self.shared, "raise ValueError('x' * 3_000_000)")
        self.assertTrue(said.startswith("ValueError"))
        self.assertIn("x" * 1000, said)

    def test_more_memory_than_there_is_is_a_failure_like_others(self):
        for code in ("'x' * (1 << 40)", "bytearray(1 << 31)", "[0] * (1 << 40)"):
            with self.subTest(code):
                self.assertRegex(self.fails(self.shared, code), "^(MemoryError|OverflowError)")

    def test_an_error_of_the_host_is_none_of_the_session(self):
        it = self.shared
        with self.assertRaises(CodeInterpreterError):
            it("1", variables={"not a name": 1})
        with self.assertRaises(CodeInterpreterError):
            it("1", variables={"v": object()})
        self.assertAlive(it)


if __name__ == "__main__":
    unittest.main()
