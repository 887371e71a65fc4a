"""A session: what lasts from call to call, how it starts and ends, and what it sees of its host."""

import os
import tempfile
import time
import unittest

import dspy
from interpreter import BIN, MODE, Case, CodeInterpreterError, better, make


class State(Case):
    def test_names_last_from_call_to_call(self):
        it = self.interpreter()
        it("import math, json as j\nx = [1]\ndef double(n): return 2 * n\nclass C:\n    y = 3")
        it("x.append(double(2))\nC.y += 1")
        self.assertEqual(it("[x, C.y, j.dumps({'a': math.floor(2.5)})]"), [[1, 4], 4, '{"a": 2}'])
        it("del x")
        self.assertIn("NameError", self.fails(it, "x"))

    def test_functions_see_what_is_bound_later(self):
        it = self.interpreter()
        it("def f(): return later")
        it("later = 5")
        self.assertEqual(it("f()"), 5)

    def test_await_works_at_the_top(self):
        it = self.interpreter()
        it("import asyncio\nawait asyncio.sleep(0)\nx = 5")
        self.assertEqual(it("async def f(n):\n    await asyncio.sleep(0)\n    return n * x\nawait f(3)"), 15)
        self.assertEqual(it("await asyncio.gather(*(f(i) for i in range(4)))"), [0, 5, 10, 15])
        self.assertEqual(it("[await f(i) for i in range(2)]"), [0, 5])
        self.assertEqual(it("async def g():\n    yield 1\nasync for i in g(): print(i)"), "1\n")

    def test_the_standard_library_is_there(self):
        modules = "re json math collections itertools functools datetime random statistics decimal textwrap string"
        for module in modules.split():
            with self.subTest(module):
                self.assertEqual(self.shared(f"import {module}\n{module}.__name__"), module)

    def test_indented_code_runs(self):
        self.assertEqual(self.shared("    x = 5\n    x + 1"), 6)
        self.assertEqual(self.shared("\n\n   if True:\n       print('a')\n\n   print('b')\n"), "a\nb\n")

    def test_code_is_the_main_module(self):
        self.assertEqual(self.shared("__name__"), "__main__")
        self.assertEqual(self.shared("def f(): pass\nf.__module__"), "__main__")

    def test_two_sessions_share_nothing(self):
        one, two = self.interpreter(), self.interpreter()
        one("x = 1; import math; math.pi = 3")
        two("x = 2")
        self.assertEqual([one("x"), two("x")], [1, 2])
        self.assertNotEqual(two("import math; math.pi"), 3)


class Life(Case):
    def test_it_starts_when_told_or_when_used(self):
        it = self.interpreter()
        self.assertIsNone(it.deno_process)
        it.start()
        process = it.deno_process
        it.start()
        self.assertEqual(it("1 + 1"), 2)
        self.assertIs(it.deno_process, process)
        lazy = self.interpreter()
        self.assertEqual(lazy("1 + 1"), 2)

    def test_shutdown_ends_the_process_well_and_for_good(self):
        it = self.interpreter()
        it("x = 1; import sys; print('noise', file=sys.stderr)")
        process = it.deno_process
        it.shutdown()
        self.assertEqual(process.returncode, 0)
        self.assertEqual(process.stderr.read(), "")
        for use in (it.start, lambda: it("x"), lambda: it.execute("x")):
            with self.assertRaisesRegex(CodeInterpreterError, "session has ended"):
                use()
        it.shutdown()

    def test_leaving_the_with_block_ends_the_process(self):
        with make() as it:
            self.assertEqual(it("1 + 1"), 2)
            process = it.deno_process
        self.assertEqual(process.returncode, 0)

    def test_the_end_of_its_input_ends_the_process_well(self):
        it = self.interpreter()
        it("x = 1")
        it.deno_process.stdin.close()
        self.assertEqual(it.deno_process.wait(), 0)
        self.assertEqual(it.deno_process.stdout.read(), "")

    def test_the_end_of_the_process_is_told_and_no_other_is_started(self):
        it = self.interpreter()
        it("x = 1")
        it.deno_process.kill()
        it.deno_process.wait()
        for _ in range(2):
            with self.assertRaises(CodeInterpreterError):
                it("x")

    def test_a_process_that_never_ran_code_ends_well(self):
        it = self.interpreter()
        it.start()
        process = it.deno_process
        it.shutdown()
        self.assertEqual(process.returncode, 0)

    @unittest.skipIf(MODE == "deno", "on Deno: it is Deno")
    def test_it_is_isolet_that_runs(self):
        it = self.interpreter()
        self.assertEqual(os.path.realpath(it.deno_command[0]), os.path.realpath(BIN))
        self.assertEqual(it("import sys; list(sys.version_info[:2])"), [3, 14])


@better("there are no limits")
class Limits(Case):
    def limited(self, *options):
        def nap():
            time.sleep(1.5)

        it = dspy.PythonInterpreter(deno_command=[BIN, "dspy", *options], tools={"nap": nap})
        self.addCleanup(it.shutdown)
        return it

    def test_tools_take_no_time_of_the_execution(self):
        it = self.limited("--timeout", "1s")
        self.assertEqual(it("nap(); nap(); 42"), 42)
        self.assertIn("the limit is 1 s", self.fails(it, "nap()\nwhile True: pass"))

    def test_the_time_of_tools_has_a_limit(self):
        it = self.limited("--host-timeout", "1s")
        self.assertIn("tools had taken 1.0", self.fails(it, "nap()"))


class Host(Case):
    """Without permissions nothing of the host is seen."""

    def test_the_environment_is_empty(self):
        os.environ["HOME_SECRET_CANARY"] = "canary-of-the-environment"
        self.addCleanup(os.environ.pop, "HOME_SECRET_CANARY")
        it = self.interpreter()
        self.assertEqual(it("import os; os.getenv('HOME_SECRET_CANARY')"), "")
        self.assertNotIn("canary-of", it("str(dict(os.environ))"))
        self.assertNotIn("PATH=", it("str(os.environ)").replace("PYTHONPATH=", ""))
        self.assertNotIn("canary-of", str(self.tried(it, "import js; js.Deno.env.get('HOME_SECRET_CANARY')")))

    def test_files_are_not_read(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("canary-of-the-files")
            file.flush()
            it = self.interpreter()
            ways = [
                f"open({file.name!r}).read()",
                f"import pathlib; pathlib.Path({file.name!r}).read_text()",
                f"import os; os.listdir({os.path.dirname(file.name)!r})",
                f"import js; js.Deno.readTextFileSync({file.name!r})",
                f"import js; js.require('fs').readFileSync({file.name!r})",
                "import js; js.process.binding('fs')",
                f"import js; await (await js.fetch('file://' + {file.name!r})).text()",
            ]
            for code in ways:
                with self.subTest(code):
                    got = str(self.tried(it, code))
                    self.assertNotIn("canary-of", got)
                    self.assertNotIn(os.path.basename(file.name) + "'", got.replace(repr(file.name), ""))
                    self.assertAlive(it)

    def test_files_of_the_host_are_not_found(self):
        said = self.fails(self.shared, "open('/etc/passwd').read()")
        self.assertIn("FileNotFoundError", said)

    def tried(self, interpreter, code):
        """What code gives or says. On the original, some of these end the session, and take their secret along."""
        try:
            return interpreter(code)
        except CodeInterpreterError as error:
            if MODE == "deno" and interpreter._session_ended:
                self.skipTest("on Deno: ends the session")
            return error


if __name__ == "__main__":
    unittest.main()
