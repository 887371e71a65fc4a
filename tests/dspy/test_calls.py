"""From where tools are called: any depth of code, many times, many sessions, asynchronously; and registered anew."""

import asyncio
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor

from interpreter import Case, better, make


def double(n):
    return 2 * n


class Places(Case):
    CODES = {
        "comprehension": "[double(n) for n in range(3)]",
        "nested comprehension": "[[double(n) for n in range(m)] for m in range(3)][2] + [4]",
        "generator": "list(double(n) for n in range(3))",
        "map": "list(map(double, range(3)))",
        "key": "sorted([2, 0, 1], key=double) and [double(0), double(1), 4]",
        "nested function": (
            "def f():\n    def g(n):\n        return double(n)\n    return [g(n) for n in range(3)]\nf()"
        ),
        "lambda": "(lambda n: [double(i) for i in range(n)])(3)",
        "class body": "class C:\n    x = [double(0), double(1)]\n    x.append(double(2))\nC.x",
        "method": "class C:\n    def __getattr__(self, name):\n        return [double(n) for n in range(3)]\nC().any",
        "decorator": "def d(f):\n    return [double(n) for n in range(3)]\n@d\ndef g(): pass\ng",
        "default": "def f(x=[double(0), double(1), double(2)]): return x\nf()",
        "reduce": "import functools\nfunctools.reduce(lambda a, n: a + [double(n)], range(3), [])",
        "re.sub": "import re\nre.sub('[0-2]', lambda m: str(double(int(m[0]))), '0 1 2').split() and [0, 2, 4]",
        "with": (
            "import contextlib\n@contextlib.contextmanager\ndef c():\n    yield double(1)\n"
            "with c() as x: pass\n[0, x, double(2)]"
        ),
        "finally": (
            "x = [0, 2]\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    pass\nfinally:\n    x.append(double(2))\nx"
        ),
        "except": (
            "x = []\nfor n in range(3):\n    try: raise ValueError\n    except ValueError: x.append(double(n))\nx"
        ),
        "exec": "exec('x = [double(n) for n in range(3)]')\nx",
        "eval": "eval('[double(n) for n in range(3)]')",
        "deep": "def f(n, d): return double(n) if d == 0 else f(n, d - 1)\n[f(n, 50) for n in range(3)]",
        "call in call": "[0, double(double(1)) // 2, double(double(1))]",
        "keyword": "[double(n=n) for n in range(3)]",
        "alias": "d = double\n[d(n) for n in range(3)]",
        "partial": "import functools\nf = functools.partial(double, n=2)\n[0, 2, f()]",
        "__del__": "x = [0]\nclass C:\n    def __del__(self): x.append(double(1))\nc = C()\ndel c\nx + [4]",
        "operator": "class C:\n    def __add__(self, n): return double(n)\n[C() + n for n in range(3)]",
        "print": (
            "import io\nf = io.StringIO()\nprint(*(double(n) for n in range(3)), file=f)\n"
            "eval('[' + f.getvalue().strip().replace(' ', ',') + ']')"
        ),
        "await": "import asyncio\nawait asyncio.sleep(0)\n[double(n) for n in range(3)]",
        "coroutine": "async def f():\n    return [double(n) for n in range(3)]\nawait f()",
        "coroutine that waited": (
            "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n"
            "    return [double(n) for n in range(3)]\nawait f()"
        ),
        "loop with await": (
            "import asyncio\nx = []\nfor n in range(3):\n    await asyncio.sleep(0)\n    x.append(double(n))\nx"
        ),
    }

    def test_tools_are_called_from_anywhere(self):
        it = self.interpreter(tools={"double": double})
        for name, code in self.CODES.items():
            with self.subTest(name):
                self.assertEqual(it(code), [0, 2, 4])

    def test_tools_are_called_from_tasks(self):
        it = self.interpreter(tools={"double": double})
        code = (
            "import asyncio\nasync def f(n):\n    await asyncio.sleep(0)\n    return double(n)\n"
            "await asyncio.gather(f(0), f(1), f(2))"
        )
        self.assertEqual(it(code), [0, 2, 4])
        self.assertEqual(it("await asyncio.create_task(f(5))"), 10)

    def test_prints_and_calls_mix(self):
        it = self.interpreter(tools={"double": double})
        self.assertEqual(
            it("for n in range(3):\n    print('before', n)\n    print(double(n))"),
            "before 0\n0\nbefore 1\n2\nbefore 2\n4\n",
        )

    def test_calls_are_made_in_order_and_once(self):
        got = []
        it = self.interpreter(tools={"one": lambda n: got.append(("one", n)), "two": lambda n: got.append(("two", n))})
        it("for n in range(3): one(n); two(n)")
        self.assertEqual(got, [(name, n) for n in range(3) for name in ("one", "two")])

    def test_thousands_of_calls_in_one_run(self):
        it = self.interpreter(tools={"double": double})
        self.assertEqual(it("sum(double(n) for n in range(2000))"), 1999 * 2000)
        self.assertEqual(it("sum(double(n) for n in range(2000))"), 1999 * 2000)


class Asynchronous(Case):
    def test_asynchronous_functions_of_the_host_are_tools(self):
        async def wait(n):
            await asyncio.sleep(0)
            return {"n": n}

        async def fail():
            await asyncio.sleep(0)
            raise ValueError("text")

        it = self.interpreter(tools={"wait": wait, "fail": fail})
        self.assertEqual(it("[wait(1), wait(n=2)]"), [{"n": 1}, {"n": 2}])
        self.assertIn("ValueError: text", self.fails(it, "fail()"))

    @better("tools have no `aio`")
    def test_calls_are_gathered(self):
        it = self.interpreter(tools={"double": double})
        it("import asyncio")
        self.assertEqual(it("await double.aio(4)"), 8)
        code = "await asyncio.gather(*(double.aio(n=n) for n in range(200)))"
        self.assertEqual(it(code), [2 * n for n in range(200)])
        code = (
            "async with asyncio.TaskGroup() as g:\n"
            "    tasks = [g.create_task(double.aio(n)) for n in range(9)]\n[t.result() for t in tasks]"
        )
        self.assertEqual(it(code), [2 * n for n in range(9)])

    @better("tools have no `aio`")
    def test_a_failure_among_gathered_calls_is_its_own(self):
        def odd(n):
            if n % 2:
                raise ValueError(f"{n} is odd")
            return n

        it = self.interpreter(tools={"odd": odd})
        code = (
            "import asyncio\n"
            "[str(r) for r in await asyncio.gather(*(odd.aio(n) for n in range(4)), return_exceptions=True)]"
        )
        self.assertEqual(it(code), ["0", "ValueError: 1 is odd", "2", "ValueError: 3 is odd"])
        said = self.fails(it, "await asyncio.gather(*(odd.aio(n) for n in range(50)))")
        self.assertIn("is odd", said)
        self.assertEqual(it("odd(8)"), 8)

    @better("tools have no `aio`")
    def test_gathered_and_plain_calls_mix(self):
        it = self.interpreter(tools={"double": double})
        code = (
            "import asyncio\nasync def f(n): return await double.aio(n) + double(n)\n"
            "await asyncio.gather(*(f(n) for n in range(20)))"
        )
        self.assertEqual(it(code), [4 * n for n in range(20)])


class Several(Case):
    def test_interpreters_in_threads_do_not_mix(self):
        count = 4
        # No thread passes before all are inside a call of a tool.
        barrier = threading.Barrier(count)

        def work(mine):
            def meet():
                barrier.wait()
                return mine

            def add(n):
                return [mine, n]

            with make(tools={"meet": meet, "add": add}) as it:
                it("x = meet()")
                calls = it("[add(n) for n in range(100)]")
                return it("x"), calls, it("print(x)")

        with ThreadPoolExecutor(count) as pool:
            for mine, got in enumerate(pool.map(work, range(count))):
                self.assertEqual(got, (mine, [[mine, n] for n in range(100)], f"{mine}\n"))

    def test_one_interpreter_is_called_from_a_tool_of_another(self):
        inner = self.interpreter()
        outer = self.interpreter(tools={"run": lambda code: inner(code)})
        self.assertEqual(outer("run('x = 20; x + 1') * 2"), 42)
        self.assertEqual(inner("x"), 20)


class Anew(Case):
    """RLM registers its tools anew for each question, by resetting `_tools_registered`."""

    def anew(self, it, **tools):
        it.tools.update(tools)
        it._tools_registered = False

    def test_tools_are_replaced_and_added_between_runs(self):
        it = self.interpreter(tools={"tool": lambda: "first"})
        self.assertEqual(it("tool()"), "first")
        self.anew(it, tool=lambda n, m=3: ["second", n, m], more=lambda: "more")
        self.assertEqual(it("[tool(1), tool(1, 2), more()]"), [["second", 1, 3], ["second", 1, 2], "more"])
        self.anew(it, tool=lambda: "third")
        self.assertEqual(it("tool()"), "third")
        self.assertIn("TypeError", self.fails(it, "tool(1)"))

    def test_registering_undoes_what_the_code_made_of_the_name(self):
        it = self.interpreter(tools={"tool": lambda: 1})
        self.assertEqual(it("real = tool\ntool = 5\ntool"), 5)
        self.anew(it)
        self.assertEqual(it("tool()"), 1)

    def test_registering_keeps_variables(self):
        it = self.interpreter(tools={"tool": lambda: 1})
        it("x = tool()")
        for _ in range(5):
            self.anew(it)
            it("x += tool()")
        self.assertEqual(it("x"), 6)

    def test_names_with_underscores_are_tools_too(self):
        it = self.interpreter(tools={"__dspy_call__": lambda handle, inputs=None: [handle, inputs], "_x": lambda: 1})
        self.assertEqual(it("[__dspy_call__('h', {'a': 1}), _x()]"), [["h", {"a": 1}], 1])

    def test_an_interpreter_without_tools_gets_some_later(self):
        it = self.interpreter()
        self.assertIn("NameError", self.fails(it, "tool()"))
        self.anew(it, tool=lambda: 1)
        self.assertEqual(it("tool()"), 1)


if __name__ == "__main__":
    unittest.main()
