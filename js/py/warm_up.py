"""What programs do most, so that V8 optimizes what does it. Runs once, when the image is made."""

import collections
import dataclasses
import datetime
import itertools
import json
import math
import random
import re
import string
import textwrap


@dataclasses.dataclass
class Point:
    x: float
    y: float

    def norm(self):
        return math.sqrt(self.x * self.x + self.y * self.y)


class Node:
    def __init__(self, value):
        self.value, self.children = value, []

    def walk(self):
        yield self.value
        for child in self.children:
            yield from child.walk()


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def primes(limit):
    sieve = bytearray([1]) * limit
    for n in range(2, math.isqrt(limit) + 1):
        if sieve[n]:
            sieve[n * n :: n] = bytes(len(range(n * n, limit, n)))
    return [n for n in range(2, limit) if sieve[n]]


def matrix(size):
    a = [[i * j % 7 for j in range(size)] for i in range(size)]
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*a)] for row in a]


def texts(words):
    counts = collections.Counter(word.lower().strip(string.punctuation) for word in words)
    common = counts.most_common()
    lines = [f"{word:>12}: {count:5d} {count / len(counts):.3f}" for word, count in common]
    text = "\n".join(lines)
    found = re.findall(r"(\w+):\s+(\d+)", text)
    text = re.sub(r"[aeiou]", lambda match: match[0].upper(), text).replace(" ", "_").split("_")
    filled = textwrap.fill(" ".join(text)[:2000])
    return dict(found), filled, sorted(text, key=lambda t: (len(t), t))


def documents(count):
    rows = [
        {"id": i, "name": f"row {i}", "tags": ["a", "b", None, True], "score": i * 1.5}
        for i in range(count)
    ]
    rows = json.loads(json.dumps(rows, indent=1, sort_keys=True))
    groups = collections.defaultdict(list)
    for row in rows:
        groups[row["id"] % 7].append(row["score"])
    return {key: (min(v), max(v), sum(v) / len(v)) for key, v in groups.items()}


def objects(count):
    points = [Point(random.random(), i % 10) for i in range(count)]
    root = Node(0)
    for i, point in enumerate(sorted(points, key=Point.norm)):
        root.children.append(Node((i, point.x)))
    failed = 0
    for value in root.walk():
        try:
            value[0] + {}
        except TypeError as error:
            failed += len(str(error)) > 0
    days = [datetime.date(2026, 1, 1) + datetime.timedelta(days=n) for n in range(100)]
    return failed, [day.isoformat() for day in days], set(itertools.permutations("abcd"))


SOURCE = "\n".join(
    f"def f{n}(a, b={n}):\n    return [a + b for _ in range({n})]" for n in range(40)
)

for _ in range(12):
    fib(19)
    primes(60_000)
    matrix(36)
    texts(("The quick brown fox, jumps over: the lazy dog! " * 60).split())
    documents(300)
    objects(800)
    exec(compile(SOURCE, "<source>", "exec"), {})
    sum(i * i for i in range(60_000))
    2**5000 // 3**1000, str(7**2000), float("1e10"), b"".join(bytes([n]) for n in range(256)).hex()
