"""What crosses between the host and the guest: results, printed text and variables."""

import datetime
import enum
import math
import unittest

import pydantic
from interpreter import Case, CodeExecutionError, better

TEXT = "é ß 中 😀 \U0010ffff \u2028 \x00 \x7f \\ \" ' \t \r\n end"


class Results(Case):
    def test_the_last_expression_is_the_result(self):
        cases = [
            ("'text'", "text"),
            ("''", ""),
            ("0", 0),
            ("-7", -7),
            ("2 ** 40", 2**40),
            ("2.5", 2.5),
            ("-1e300", -1e300),
            ("True", True),
            ("False", False),
            ("[]", []),
            ("{}", {}),
            ("[1, 'a', 2.5, None, True, []]", [1, "a", 2.5, None, True, []]),
            ("(1, (2, 3))", [1, [2, 3]]),
            ("{'a': {'b': [1, {'c': (True, 'd')}]}, '': 0}", {"a": {"b": [1, {"c": [True, "d"]}]}, "": 0}),
            ("x = 5\nx", 5),
            ("def f():\n    return 6\nf()", 6),
        ]
        for code, wanted in cases:
            with self.subTest(code):
                self.assertSame(self.shared(code), wanted)

    def test_dicts_keep_their_order(self):
        self.assertEqual(list(self.shared("{'z': 1, 'a': 2, 'm': 3}")), ["z", "a", "m"])

    def test_every_letter_crosses(self):
        self.assertEqual(self.shared(ascii(TEXT)), TEXT)
        self.assertEqual(self.shared(f"{{{ascii(TEXT)}: [{ascii(TEXT)}]}}"), {TEXT: [TEXT]})

    def test_deep_nesting_crosses(self):
        code = "x = []\nfor _ in range(50): x = [x]\nx"
        wanted = []
        for _ in range(50):
            wanted = [wanted]
        self.assertEqual(self.shared(code), wanted)

    def test_what_behaves_like_a_plain_value_crosses_as_one(self):
        cases = [
            ("collections.deque([1, 2])", [1, 2]),
            ("range(3)", [0, 1, 2]),
            ("collections.UserList('ab')", ["a", "b"]),
            ("collections.namedtuple('P', 'x y')(1, 2)", [1, 2]),
            ("collections.Counter('aab')", {"a": 2, "b": 1}),
            ("collections.defaultdict(list, a=[1])", {"a": [1]}),
            ("collections.OrderedDict(b=1, a=2)", {"b": 1, "a": 2}),
            ("enum.IntEnum('E', 'A').A", 1),
            ("type('S', (str,), {})('x')", "x"),
            ("type('L', (list,), {})([1])", [1]),
        ]
        for code, wanted in cases:
            with self.subTest(code):
                self.assertSame(self.shared("import collections, enum\n" + code), wanted)

    def test_keys_become_text_as_json_has_it(self):
        self.assertEqual(self.shared("{1: 'a', 2.5: 'b'}"), {"1": "a", "2.5": "b"})

    @better("keys whose value is None are lost")
    def test_none_in_a_dict_crosses(self):
        self.assertSame(self.shared("{'a': None, 'b': [None]}"), {"a": None, "b": [None]})

    @better("from 2**53 - 1 on they end the session")
    def test_integers_of_any_size_cross_exactly(self):
        for number in (2**53, 2**53 + 1, -(2**63), 2**64 + 1, 10**100):
            with self.subTest(number):
                self.assertSame(self.shared(str(number)), number)
                self.assertSame(self.shared(f"[{{'n': {number}}}]"), [{"n": number}])

    @better("floats without a fraction become integers")
    def test_floats_stay_floats(self):
        self.assertSame(self.shared("[1.0, -0.0, {'x': 1e20}]"), [1.0, -0.0, {"x": 1e20}])
        self.assertSame(self.shared("3.0"), 3.0)

    @better("sets become empty objects")
    def test_sets_become_lists(self):
        self.assertEqual(self.shared("{7}"), [7])
        self.assertEqual(sorted(self.shared("frozenset('abc')")), ["a", "b", "c"])
        self.assertEqual(self.shared("{'s': [set()]}"), {"s": [[]]})

    @better("they become empty objects")
    def test_what_holds_plain_values_crosses_as_they(self):
        code = "import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int\n    y: list\nP(1, [2])"
        self.assertEqual(self.shared(code), {"x": 1, "y": [2]})
        self.assertEqual(self.shared("import datetime; [datetime.date(2020, 1, 2)]"), ["2020-01-02"])
        self.assertEqual(self.shared("import decimal; decimal.Decimal('1.50')"), "1.50")
        self.assertEqual(self.shared("import enum; enum.Enum('E', 'A').A"), 1)
        self.assertEqual(self.shared("{'a': 1}.keys()"), ["a"])

    @better("becomes an object of numbered fields")
    def test_bytes_arrive_as_text_or_as_numbers(self):
        self.assertIn(self.shared("b'ab'"), ([97, 98], "b'ab'"))

    @better("they become empty objects, or nothing")
    def test_what_has_no_plain_form_is_shown_as_python_shows_it(self):
        code = "class Thing:\n    def __repr__(self): return '<a thing>'\nThing()"
        self.assertEqual(self.shared(code), "<a thing>")
        self.assertEqual(self.shared("len"), "<built-in function len>")

    def test_floats_that_are_no_numbers_do_no_harm(self):
        for code in ("float('nan')", "float('inf')", "-float('inf')"):
            got = self.shared(code)
            self.assertTrue(got is None or not math.isfinite(got), got)
            self.assertAlive(self.shared)

    @better("a deep list is an error of the host")
    def test_no_value_ends_the_session(self):
        values = [
            "object()",
            "lambda: 0",
            "type",
            "(i for i in [1])",
            "1j",
            "b'\\xff'",
            "bytearray(b'x')",
            "memoryview(b'x')",
            "'\\ud800'",
            "['\\udfff']",
            "__import__('math')",
            "ValueError('x')",
            "...",
            "{(1, 2): 3}",
            "{None: 1, True: 2}",
            "[x := [], x.append(x)][0]",
            "x = {}\nx['x'] = x\nx",
            "class T:\n    __repr__ = lambda self: 1 / 0\nT()",
            "class T:\n    __repr__ = lambda self: 5\n[T()]",
            "x = []\nfor _ in range(5000): x = [x]\nx",
            "import js; js",
            "import js; js.Object.new()",
            "import js; js.Array.of(1, 2)",
            "import js; js.undefined",
        ]
        for code in values:
            with self.subTest(code):
                try:
                    self.shared(code)
                except CodeExecutionError:
                    pass  # It may say that it cannot cross.
                self.assertAlive(self.shared)


class Prints(Case):
    def test_without_a_value_the_result_is_what_was_printed(self):
        cases = [
            ("print('a'); print('b')", "a\nb\n"),
            ("print('a', end='')", "a"),
            ("print()", "\n"),
            ("x = 1", ""),
            ("None", ""),
            ("", ""),
            ("# nothing", ""),
            ("print('a', 2, sep='-', flush=True)", "a-2\n"),
            ("import sys; _ = sys.stdout.write('w')", "w"),
            ("for i in range(3): print(i)", "0\n1\n2\n"),
            ("print('  spaces  ')", "  spaces  \n"),
            ("print('two\\n\\nlines\\n')", "two\n\nlines\n\n"),
        ]
        for code, wanted in cases:
            with self.subTest(code):
                self.assertSame(self.shared(code), wanted)

    def test_every_letter_is_printed(self):
        self.assertEqual(self.shared(f"print({ascii(TEXT)})"), TEXT + "\n")

    def test_a_value_comes_instead_of_what_was_printed(self):
        self.assertEqual(self.shared("print('lost')\n'value'"), "value")
        self.assertEqual(self.shared("print('not lost in the next')"), "not lost in the next\n")

    def test_a_semicolon_leaves_no_value(self):
        self.assertEqual(self.shared("print('a'); 5;"), "a\n")

    def test_what_goes_to_stderr_is_no_result(self):
        self.assertEqual(self.shared("import sys; print('e', file=sys.stderr); print('o')"), "o\n")

    def test_what_a_failed_run_printed_does_not_come_later(self):
        self.fails(self.shared, "print('early'); 1 / 0")
        self.assertEqual(self.shared("print('late')"), "late\n")

    def test_redirected_prints_are_not_the_result(self):
        code = "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as f: print('in')\nprint('out')"
        self.assertEqual(self.shared(code), "out\n")
        self.assertEqual(self.shared("f.getvalue()"), "in\n")


class Colour(enum.Enum):
    RED = "red"


class Point(pydantic.BaseModel):
    x: int
    label: str | None = None


class Variables(Case):
    def test_variables_are_what_they_were(self):
        values = [
            "text",
            "",
            TEXT,
            "'''\"\"\"\\",
            "{braces} %s $x `y`",
            0,
            -(10**40),
            2.5,
            1.0,
            5e-324,
            True,
            False,
            None,
            [],
            {},
            [1, "a", None, [True, {"b": 2.5}]],
            {"a": [1, {"b": None}], "with space": "x", "é😀": 1},
        ]
        for value in values:
            with self.subTest(ascii(value)):
                got = self.shared(f"v == {value!r} and type(v).__name__", variables={"v": value})
                self.assertEqual(got, type(value).__name__)

    def test_what_json_does_not_have_becomes_what_it_has(self):
        values = [
            ((1, (2,)), [1, [2]]),
            ({3, 1, 2}, [1, 2, 3]),
            ({1: "a", 2: "b"}, {1: "a", 2: "b"}),
            (Point(x=1), {"x": 1, "label": None}),
            ([Point(x=1, label="p")], [{"x": 1, "label": "p"}]),
            (Colour.RED, "red"),
            (datetime.date(2020, 1, 2), "2020-01-02"),
        ]
        for value, wanted in values:
            with self.subTest(repr(value)):
                got = self.shared(f"v == {wanted!r} and type(v).__name__", variables={"v": value})
                self.assertEqual(got, type(wanted).__name__)

    def test_floats_that_are_no_numbers_come_in(self):
        code = "import math\n[math.isnan(v['a']), v['b'] == math.inf, v['c'] == [-math.inf]]"
        value = {"a": math.nan, "b": math.inf, "c": [-math.inf]}
        self.assertEqual(self.shared(code, variables={"v": value}), [True, True, True])

    def test_half_a_letter_comes_in(self):
        self.assertEqual(self.shared("[len(v), ord(v)]", variables={"v": "\ud800"}), [1, 0xD800])

    def test_several_come_together_and_stay(self):
        variables = {"a": 1, "b": [2], "été": "3"}
        self.assertEqual(self.shared("[a, b, été]", variables=variables), [1, [2], "3"])
        self.assertEqual(self.shared("b.append(4)\n[a, b, été]"), [1, [2, 4], "3"])

    def test_a_variable_that_comes_again_replaces_what_the_code_made_of_it(self):
        self.shared("v.append(9); other = v", variables={"v": [1]})
        self.assertEqual(self.shared("[v, other]", variables={"v": [2]}), [[2], [1, 9]])

    def test_a_failed_run_has_had_its_variables(self):
        self.fails(self.shared, "1 / 0", variables={"kept": 5})
        self.assertEqual(self.shared("kept"), 5)


if __name__ == "__main__":
    unittest.main()
