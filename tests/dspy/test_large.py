"""Large values: variables of hundreds of megabytes, and megabytes in every other place."""

import hashlib
import json
import unittest

from interpreter import Case

MIB = 2**20


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


class Variables(Case):
    """DSPy puts what is longer than 100 MiB into a file of the guest, and the rest into the code."""

    def test_a_string_of_200_mebibytes_arrives_whole(self):
        # Lines that JSON escapes, and a letter that is not ASCII. One beyond Latin-1 would make it
        # four times as large.
        line = "".join(f'line {n}: "quoted" \\ text of some length to read through\n' for n in range(16384))
        text = "é" + line * (200 * MIB // len(line) + 1)
        self.assertGreater(len(text), 200 * MIB)
        it = self.interpreter()
        code = "import hashlib\n[len(v), hashlib.sha256(v.encode()).hexdigest(), v[-20:], small]"
        got = it(code, variables={"v": text, "small": [1]})
        self.assertEqual(got, [len(text), digest(text), text[-20:], [1]])
        del text, line
        self.assertEqual(it("len(v) > 200 * 2 ** 20 and v.count('\\n') > 1_000_000"), True)
        # A short one takes its place, which comes in the other way.
        self.assertEqual(it("v", variables={"v": "short"}), "short")
        self.assertAlive(it)

    def test_a_list_of_120_mebibytes_arrives_whole(self):
        items = [{"id": n, "name": f'😀 "{n}"', "tags": ["a", None, True, n / 4]} for n in range(50_000)]
        items += ["x" * MIB] * 120
        self.assertGreater(len(json.dumps(items)), 120 * MIB)
        it = self.interpreter()
        code = (
            "[len(v), sum(i['id'] for i in v[:50_000]), v[49_999], sum(map(len, v[50_000:])), "
            "sum(i['tags'][3] for i in v[:50_000])]"
        )
        wanted = [len(items), 49_999 * 25_000, items[49_999], 120 * MIB, sum(i["tags"][3] for i in items[:50_000])]
        self.assertEqual(it(code, variables={"v": items}), wanted)
        self.assertAlive(it)


class Megabytes(Case):
    def test_strings_cross_both_ways(self):
        text = "é😀\n\"'\\0123456789" * 400_000
        it = self.interpreter()
        self.assertEqual(it("v", variables={"v": text}), text)
        self.assertEqual(it("[v, {'k': v}]"), [text, {"k": text}])

    def test_lists_and_dicts_cross_both_ways(self):
        items = [{"n": n, "text": f"é {n}", "list": [n, None, True, n + 0.5]} for n in range(15_000)]
        it = self.interpreter()
        self.assertEqual(it("len(v)", variables={"v": items}), 15_000)
        self.assertEqual(it("[i['list'] for i in v]"), [i["list"] for i in items])
        self.assertEqual(it("{i['text']: i['n'] for i in v}"), {i["text"]: i["n"] for i in items})
        self.assertEqual(it("list(range(300_000))"), list(range(300_000)))

    def test_everything_printed_is_the_result(self):
        it = self.interpreter()
        self.assertEqual(it("print('x' * 20_000_000)"), "x" * 20_000_000 + "\n")
        self.assertEqual(
            it("for n in range(100_000): print('line', n)"), "".join(f"line {n}\n" for n in range(100_000))
        )

    def test_long_code_runs(self):
        lines = 20_000
        code = "".join(f"x{n} = {n}  # {'é' * 20}\n" for n in range(lines))
        self.assertEqual(self.interpreter()(code + f"x{lines - 1}"), lines - 1)
        self.assertEqual(self.interpreter()(f"x = {'y' * 5_000_000!r}\nlen(x)"), 5_000_000)

    def test_tools_take_and_give_megabytes(self):
        text = 'é\n"x' * 4_000_000
        got = []
        it = self.interpreter(tools={"echo": lambda value: got.append(value) or value})
        self.assertEqual(it("r = echo(v)\n[r == v, len(r)]", variables={"v": text}), [True, len(text)])
        self.assertEqual(it("r = echo([{'k': v[:2_000_000]}] * 5)\n[r[4]['k'] == v[:2_000_000], len(r)]"), [True, 5])
        self.assertEqual([got[0] == text, got[1] == [{"k": text[:2_000_000]}] * 5], [True, True])
        self.assertEqual(it("sum(len(echo('x' * 100_000)) for _ in range(100))"), 10_000_000)

    def test_megabytes_are_submitted(self):
        it = self.interpreter()
        self.assertEqual(it("SUBMIT({'text': 'é' * 5_000_000})").output, {"output": {"text": "é" * 5_000_000}})


if __name__ == "__main__":
    unittest.main()
