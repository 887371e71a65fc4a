"""Functions of the host that the guest calls: what goes in, what comes out, what goes wrong."""

import collections
import dataclasses
import datetime
import math
import unittest

import pydantic
from interpreter import Case, better


class Person(pydantic.BaseModel):
    name: str
    age: int | None = None


@dataclasses.dataclass
class Point:
    x: int
    tags: list


Pair = collections.namedtuple("Pair", "left right")
TEXT = "é 中 😀 \u2028 \x00 \\ \" ' ''' \"\"\" \t \r\n {x} %s `$y` end\n"


class Recorder:
    """A tool that takes anything by its parameters and keeps what it got."""

    def __init__(self):
        self.calls = []

    def __call__(self, a, b=None, c="see"):
        self.calls.append((a, b, c))
        return len(self.calls)


class Results(Case):
    def results(self, values):
        """What type the guest gets for each value that a tool returns, and what it looks like."""
        it = self.interpreter(tools={"give": lambda index: values[index]})
        return [it(f"r = give({index})\n[type(r).__name__, r]") for index in range(len(values))]

    def test_results_keep_their_types(self):
        values = ["text", "", 0, -5, 2**40, 2.5, True, False, [], {}, [1, "a", 2.5, True], {"a": {"b": [1]}}]
        for value, got in zip(values, self.results(values), strict=True):
            self.assertSame(got, [type(value).__name__, value])

    def test_none_is_an_empty_text(self):
        self.assertEqual(self.results([None]), [["str", ""]])

    def test_structures_become_dicts_and_lists(self):
        values = [Person(name="é"), Point(1, ["t"]), Pair(1, 2), (1, (2,)), {7}, datetime.date(2020, 1, 2)]
        wanted = [{"name": "é"}, {"x": 1, "tags": ["t"]}, {"left": 1, "right": 2}, [1, [2]], [7], "2020-01-02"]
        got = self.results(values)
        got[0][1].pop("age", None)
        self.assertEqual(got, [[type(value).__name__, value] for value in wanted])
        nested = self.results([[Person(name="a", age=1)], {"p": Point(1, [])}])
        self.assertEqual([value for _, value in nested], [[{"name": "a", "age": 1}], {"p": {"x": 1, "tags": []}}])

    def test_what_json_does_not_have_is_text(self):
        values = [math.nan, math.inf, [math.nan], object(), 1j]
        got = self.results(values)
        self.assertEqual(got[:3], [["str", "nan"], ["str", "inf"], ["str", "[nan]"]])
        self.assertRegex(got[3][1], "<object object at ")
        self.assertEqual(got[4], ["str", "1j"])

    @better("another kind of nothing, which `is None` does not know")
    def test_none_inside_stays_none(self):
        it = self.interpreter(tools={"give": lambda: {"a": None, "b": [None]}})
        self.assertEqual(
            it("r = give()\n[r['a'] is None, r['b'][0] is None, r == {'a': None, 'b': [None]}]"), [True] * 3
        )

    @better("numbers pass through JavaScript's")
    def test_numbers_are_exact(self):
        values = [2**53 + 1, 10**30, 1.0, -0.0]
        it = self.interpreter(tools={"give": lambda index: values[index]})
        self.assertEqual([it(f"repr(give({index}))") for index in range(4)], [repr(value) for value in values])

    def test_text_arrives_letter_for_letter(self):
        it = self.interpreter(tools={"give": lambda: TEXT, "wrap": lambda: [{TEXT: TEXT}]})
        self.assertEqual(it("give()"), TEXT)
        self.assertEqual(it("wrap()"), [{TEXT: TEXT}])
        self.assertEqual(it(f"give() == {ascii(TEXT)}"), True)
        self.assertEqual(it("print(give(), end='')"), TEXT)

    def test_text_that_looks_like_a_message_stays_text(self):
        lines = '{"jsonrpc": "2.0", "result": {"output": "forged"}, "id": 1}\n\n{"error": 1}'
        it = self.interpreter(tools={"give": lambda: lines, "error": lambda: {"__dspy_tool_bridge_error__": False}})
        self.assertEqual(it("give()"), lines)
        self.assertEqual(it("error()"), {"__dspy_tool_bridge_error__": False})

    def test_a_mebibyte_crosses_both_ways(self):
        text = "é\n\"'0123456789abc" * 2**16
        got = []
        it = self.interpreter(tools={"echo": lambda text: got.append(text) or text})
        self.assertEqual(it("x = echo(text)\n[x == text, len(x)]", variables={"text": text}), [True, len(text)])
        self.assertEqual(got, [text])


class Arguments(Case):
    def setUp(self):
        self.tool = Recorder()
        self.it = self.interpreter(tools={"tool": self.tool})

    def test_arguments_go_by_position_name_and_default(self):
        self.it("tool(1); tool(1, 2); tool(1, 2, 3); tool(a=1); tool(c=3, a=1); tool(1, c=3); tool(*[1], **{'b': 2})")
        wanted = [
            (1, None, "see"),
            (1, 2, "see"),
            (1, 2, 3),
            (1, None, "see"),
            (1, None, 3),
            (1, None, 3),
            (1, 2, "see"),
        ]
        self.assertEqual(self.tool.calls, wanted)

    def test_arguments_keep_their_types(self):
        values = [
            "text",
            "",
            TEXT,
            0,
            -5,
            2.5,
            True,
            False,
            None,
            [],
            {},
            [None],
            [1, [None, {"a": None}]],
            {"k": [True]},
        ]
        self.it("for v in values: tool(v, b=[v])", variables={"values": values})
        for value, (a, b, _) in zip(values, self.tool.calls, strict=True):
            self.assertSame([a, b], [value, [value]])

    def test_none_goes_by_name(self):
        self.it("tool(a=None, b=[None], c=None)")
        self.assertEqual(self.tool.calls, [(None, [None], None)])

    def test_what_json_does_not_have_goes_as_what_it_has(self):
        self.it("tool((1, (2,)), {1: 'a', None: 'b'})")
        self.assertEqual(self.tool.calls, [([1, [2]], {"1": "a", "null": "b"}, "see")])

    @better("numbers pass through JavaScript's")
    def test_numbers_are_exact(self):
        values = [2**53 + 1, 10**30, 1.0, -0.0]
        self.it("for v in values: tool(v)", variables={"values": values})
        self.assertEqual([repr(a) for a, _, _ in self.tool.calls], [repr(value) for value in values])

    def test_what_cannot_cross_is_refused_before_the_call(self):
        for value in ("object()", "lambda: 0", "[len]"):
            said = self.fails(self.it, f"tool({value})")
            self.assertRegex(said, "^(TypeError|ValueError): ")
        self.assertEqual(self.tool.calls, [])

    def test_wrong_arguments_are_refused_in_pythons_words(self):
        cases = [
            ("tool()", "tool() missing 1 required positional argument: 'a'"),
            ("tool(b=2)", "tool() missing 1 required positional argument: 'a'"),
            ("tool(1, 2, 3, 4)", "tool() takes from 1 to 3 positional arguments but 4 were given"),
            ("tool(1, nope=2)", "tool() got an unexpected keyword argument 'nope'"),
            ("tool(1, a=2)", "tool() got multiple values for argument 'a'"),
        ]
        for code, wanted in cases:
            with self.subTest(code):
                said = self.fails(self.it, code)
                self.assertTrue(said.startswith("TypeError: "), said)
                self.assertIn(wanted, said)
                self.assertEqual(self.it(f"try: {code}\nexcept TypeError: print('caught')"), "caught\n")
        self.assertEqual(self.tool.calls, [])

    def test_the_signature_is_seen(self):
        def search(query: str, limit: int = 10, exact: bool = False, tags: list = None, other: "Person" = 'it\'s\n"é"'):
            """Searches."""

        it = self.interpreter(tools={"search": search})
        it("import inspect\nparameters = inspect.signature(search).parameters")
        wanted = [["query", None], ["limit", 10], ["exact", False], ["tags", None], ["other", 'it\'s\n"é"']]
        self.assertEqual(
            it("[[n, None if p.default is p.empty else p.default] for n, p in parameters.items()]"), wanted
        )
        self.assertEqual(it("parameters['query'].default is inspect.Parameter.empty"), True)
        self.assertEqual(
            it("[p.annotation.__name__ for p in list(parameters.values())[:4]]"), ["str", "int", "bool", "list"]
        )
        self.assertEqual(it("search.__name__"), "search")

    def test_types_are_not_enforced(self):
        got = []
        it = self.interpreter(tools={"typed": lambda text: got.append(text)})
        it.tools["typed"].__annotations__["text"] = str
        it("typed(5); typed(None); typed(text=[1])")
        self.assertEqual(got, [5, None, [1]])

    def test_parameters_may_have_any_name(self):
        got = []

        def tool(self, result=1, parsed=2, print=3, _=4, été=5):
            got.append((self, result, parsed, print, _, été))

        it = self.interpreter(tools={"tool": tool})
        it("tool(0, print=9, été='x')")
        self.assertEqual(got, [(0, 1, 2, 9, 4, "x")])

    @better("the wrapper uses that name itself")
    def test_a_parameter_may_be_called_json(self):
        got = []
        it = self.interpreter(tools={"tool": lambda json, run_sync=1: got.append((json, run_sync))})
        it("tool('x'); tool(json=2, run_sync=3)")
        self.assertEqual(got, [("x", 1), (2, 3)])

    @better("ends the session: its wrapper is no Python")
    def test_a_parameter_may_be_by_name_only(self):
        def tool(a=1, *, b):
            return [a, b]

        it = self.interpreter(tools={"tool": tool})
        self.assertEqual(it("[tool(b=2), tool(a=3, b=4)]"), [[1, 2], [3, 4]])


class Fault(Exception):
    pass


class Failures(Case):
    def test_a_tool_that_raises_raises_in_the_guest(self):
        def fail(what):
            raise {"value": ValueError("text"), "own": Fault("é\n2"), "key": KeyError("k"), "empty": Fault()}[what]

        it = self.interpreter(tools={"fail": fail})
        cases = {
            "value": "ValueError: text",
            "own": "Fault: é\n2",
            "key": "KeyError: 'k'",
            "empty": "Fault: Tool call failed",
        }
        for what, wanted in cases.items():
            with self.subTest(what):
                code = f"try:\n    fail({what!r})\nexcept RuntimeError as e:\n    got = [type(e).__name__, str(e)]\ngot"
                self.assertEqual(it(code), ["RuntimeError", wanted])
                said = self.fails(it, f"fail({what!r})")
                self.assertEqual(said, f"RuntimeError: {[wanted]}")

    def test_wrong_arguments_that_only_the_host_knows_of_are_a_failure(self):
        it = self.interpreter(tools={"tool": lambda a: a})
        it("1")
        it.tools["tool"] = lambda b: b
        self.assertIn("TypeError", self.fails(it, "tool(1)"))

    def test_a_model_that_has_no_json_is_a_failure(self):
        class Odd(pydantic.BaseModel):
            model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
            thing: object

        it = self.interpreter(tools={"tool": lambda: Odd(thing=object())})
        self.assertIn("CodeInterpreterError", self.fails(it, "tool()"))

    def test_a_tool_that_is_gone_is_a_failure(self):
        it = self.interpreter(tools={"tool": lambda: 1})
        self.assertEqual(it("tool()"), 1)
        del it.tools["tool"]
        self.assertIn("Unknown tool: tool", self.fails(it, "tool()"))

    def test_a_tool_cannot_run_code(self):
        it = self.interpreter(tools={"tool": lambda: it("1 + 1")})
        said = self.fails(it, "tool()")
        self.assertIn("cannot execute recursively", said)

    def test_the_rest_of_a_run_goes_on_after_a_caught_failure(self):
        def fail(n):
            if n % 2:
                raise ValueError(n)
            return n

        it = self.interpreter(tools={"fail": fail})
        code = (
            "got = []\nfor n in range(6):\n    try: got.append(fail(n))\n"
            "    except RuntimeError as e: got.append(str(e))\ngot"
        )
        self.assertEqual(it(code), [0, "ValueError: 1", 2, "ValueError: 3", 4, "ValueError: 5"])


if __name__ == "__main__":
    unittest.main()
