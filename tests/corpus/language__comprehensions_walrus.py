"""Comprehensions of every kind, assignment expressions, slicing, chained comparisons, conditional expressions."""
from itertools import count

words = "the quick brown fox jumps over the lazy dog".split()
print([w.title() for w in words if len(w) > 3])
print(sorted({len(w) for w in words}), {w: len(w) for w in words if w[0] in "bcd"})
print([(x, y) for x in range(4) for y in range(x) if (x + y) % 2])
print([[row[i] for row in [(1, 2, 3), (4, 5, 6)]] for i in range(3)])
print(sum(n * n for n in range(10) if n % 3 == 0), max((len(w), w) for w in words), any(w > "x" for w in words))
print({k: v for d in ({"a": 1, "b": 2}, {"b": 3, "c": 4}) for k, v in d.items()})
print([f(3) for f in [lambda v, m=m: v * m for m in (1, 10, 100)]])
print([a if a % 2 else -a for a in range(6)], [*range(3), *"ab", *{"k": 0}], {**{"x": 1}, "y": 2, **{"x": 3}})

if (n := len(words)) > 5 and (longest := max(words, key=len)):
    print(n, longest)
print([y for x in range(6) if (y := x**2) % 2 == 0], "last y:", y)
numbers = iter([3, 8, 2, -1, 7])
collected = []
while (value := next(numbers)) >= 0:
    collected.append(value)
print(collected, value, next(numbers))
total = 0
print([total := total + v for v in (1, 2, 3, 4)], total)
first_match = next((w for w in words if (hit := "o" in w)), None)
print(first_match, hit, (lambda: (inner := 5) + inner)())
print(any((witness := n) ** 2 > 50 for n in count()), witness)

letters = list("abcdefgh")
print(letters[2:5], letters[::-2], letters[-3:], letters[5:2], letters[100:], letters[:-6])
letters[1:3] = ["X", "Y", "Z"]
letters[::4] = ["!"] * len(letters[::4])
del letters[-2:]
print(letters, letters.index("Z"), letters.count("!"))
letters[2:2] = "new"
print("".join(letters), slice(None, -2, 3).indices(10))

for a, b, c in [(1, 2, 3), (3, 2, 1), (1, 1, 2)]:
    print(a, b, c, a < b < c, a <= b <= c, a < b > c, a == b != c)
print(1 < 2 < 3 in [3], (1 < 2) < 3, not 1 == 2, 5 if [] else 6, [] or {} or "last", 0 and 1 / 0, "a" and "b")

calls = []


def note(value):
    calls.append(value)
    return value


print(note(1) < note(5) < note(2) < note(9), calls)
calls.clear()
print({note("k"): note("v")}, note("f") if note("") else note("e"), calls)

first, *middle, last = range(6)
(a, b), [c, *d] = (1, 2), "xyz"
print(first, middle, last, a, b, c, d)
i, array = 0, [10, 20, 30]
i, array[i] = 1, "changed"
print(i, array)
i, array[i] = 2, "second"
print(array)
x = y = []
x.append(1)
x, y = y, x
print(x is y, y)
x += [2]
print(y, x == [1, 2])
head, (*_, tail) = 1, (2, 3, 4)
print(head, tail)

for n in range(2, 12):
    for divisor in range(2, n):
        if n % divisor == 0:
            break
    else:
        print(n, end=" prime; ")
print()
n = 27
steps = 0
while n != 1:
    n = 3 * n + 1 if n % 2 else n // 2
    steps += 1
else:
    print("collatz", steps)
table = [[(r * c) % 7 for c in range(1, 7)] for r in range(1, 7)]
print("\n".join(" ".join(map(str, row)) for row in table))
print([list(column) for column in zip(*table)] == table, all(sorted(row) == list(range(1, 7)) for row in table))
print([*enumerate("ab", start=1)], [*zip("abc", range(2))], [*map(pow, (2, 3), (5, 2))], [*filter(None, [0, 1, "", "x"])])
try:
    print(list(zip([1, 2], [1], strict=True)))
except ValueError as error:
    print("strict zip:", type(error).__name__)
dictionary = dict(one=1, two=2) | {"three": 3}
dictionary |= [("one", 11)]
print(dictionary, list(reversed(dictionary)), dictionary.keys() & {"one", "four"}, dictionary.items() >= {("two", 2)})
print(dictionary.setdefault("four", 4), dictionary.pop("two"), dictionary.pop("none", None), dictionary.popitem(), dictionary)
