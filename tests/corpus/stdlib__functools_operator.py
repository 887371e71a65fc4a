"""functools and operator: caches, partials, reduce, singledispatch, total_ordering, cmp_to_key, getters, in-place operators."""
import functools
import operator
from collections import namedtuple
from numbers import Number

calls = []


@functools.lru_cache(maxsize=3)
def square(n, *, label="x"):
    calls.append(n)
    return n * n


print([square(n) for n in (1, 2, 1, 3, 4, 1, 2)], calls, square.cache_info(), square.cache_parameters())
square(4, label="y")
square.cache_clear()
print(square.cache_info(), square.__wrapped__(9), square.__name__)


@functools.cache
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@functools.cache
def edit_distance(a, b):
    if not a or not b:
        return len(a) + len(b)
    return min(edit_distance(a[1:], b) + 1, edit_distance(a, b[1:]) + 1, edit_distance(a[1:], b[1:]) + (a[0] != b[0]))


print(fibonacci(90), fibonacci.cache_info().misses, edit_distance("saturday", "sundays"))
try:
    square([])
except TypeError as error:
    print("unhashable argument:", type(error).__name__)


@functools.lru_cache(typed=True)
def typed(value):
    return type(value).__name__


print([typed(v) for v in (1, 1.0, True, 1)], typed.cache_info().misses)

hexadecimal = functools.partial(int, base=16)
greet = functools.partial("{} {name}{}".format, "hello", name="ann")
print(hexadecimal("ff"), greet("!"), greet("?", name="bob"), hexadecimal.func is int, greet.args, greet.keywords, functools.partial(hexadecimal, "a")())
print(functools.reduce(operator.add, [[1], [2], [3]]), functools.reduce(lambda a, b: a * 10 + b, [1, 2, 3], 9), functools.reduce(max, [3]), functools.reduce(operator.or_, [{1}, {2}], set()))
try:
    functools.reduce(operator.add, [])
except TypeError as error:
    print("empty reduce:", type(error).__name__)


@functools.singledispatch
def render(value):
    return f"<{type(value).__name__}>"


@render.register
def _(value: int):
    return f"int {value}"


@render.register(list)
@render.register(tuple)
def _(value):
    return "[" + ", ".join(map(render, value)) + "]"


@render.register
def _(value: Number):
    return f"number {value}"


@render.register(type(None))
def _(value):
    return "nothing"


print(render([1, (2.5, None), True, "s", 3j]), render.dispatch(bool) is render.dispatch(int), len(render.registry))


class Formatter:
    @functools.singledispatchmethod
    def show(self, value):
        return f"any {value}"

    @show.register
    def _(self, value: str):
        return f"text {value!r}"

    @functools.cached_property
    def expensive(self):
        calls.append("expensive")
        return len(calls)

    scaled = functools.partialmethod(lambda self, factor, value: factor * value, 3)


formatter = Formatter()
calls.clear()
print(formatter.show("a"), formatter.show(3), formatter.expensive, formatter.expensive, calls, formatter.scaled(5), "expensive" in vars(formatter))
del formatter.expensive
print(formatter.expensive)


@functools.total_ordering
class Card:
    ranks = "23456789TJQKA"

    def __init__(self, text):
        self.text = text

    def __eq__(self, other):
        return self.text[0] == other.text[0]

    def __lt__(self, other):
        return self.ranks.index(self.text[0]) < self.ranks.index(other.text[0])


print([c.text for c in sorted(map(Card, ["KH", "2S", "TD", "AC"]))], Card("3H") >= Card("3S"), Card("4H") > Card("TS"), max(map(Card, ["9C", "QD"])).text)
natural = functools.cmp_to_key(lambda a, b: (len(a) > len(b)) - (len(a) < len(b)) or (a > b) - (a < b))
print(sorted(["bb", "a", "ccc", "aa", "b"], key=natural), min(["zz", "y"], key=natural))
largest = sorted([3, 30, 34, 5, 9], key=functools.cmp_to_key(lambda a, b: int(f"{b}{a}") - int(f"{a}{b}")))
print("largest number:", "".join(map(str, largest)))

Row = namedtuple("Row", "name age tags")
rows = [Row("ann", 30, {"k": 1}), Row("bob", 25, {"k": 2}), Row("cy", 30, {"k": 0})]
print(sorted(rows, key=operator.attrgetter("age", "name"))[1].name, [operator.itemgetter(1, 0)(r) for r in rows], operator.itemgetter(slice(1))("xyz"), operator.attrgetter("name.__class__.__name__")(rows[0]), list(map(operator.methodcaller("upper"), "ab")), operator.methodcaller("replace", "a", "o", 1)("banana"))
print(operator.add(2, 3), operator.floordiv(7, 2), operator.mod(-7, 3), operator.matmul.__name__, operator.concat("a", "b"), operator.contains("abc", "b"), operator.countOf([1, 2, 1], 1), operator.indexOf("abc", "c"), operator.is_not(1, None), operator.truth([]), operator.index(True), operator.inv(5), operator.xor(5, 1), operator.length_hint(iter([1, 2])), operator.not_(0))
value = [1]
same = operator.iadd(value, [2])
table = {}
operator.setitem(table, "k", 5)
print(same is value, value, table, operator.getitem(table, "k"), operator.delitem(table, "k"), table, operator.lt("a", "b"), operator.pow(2, 10))


def compose(*functions):
    return functools.reduce(lambda f, g: lambda x: g(f(x)), functions)


def pipeline(value, *steps):
    return functools.reduce(lambda current, step: step(current), steps, value)


print(compose(str.strip, str.title, lambda s: s + "!")("  the end "), pipeline(range(10), lambda r: filter(lambda n: n % 2, r), lambda r: map(operator.neg, r), list))


def curry(function, arity):
    return lambda *a: function(*a) if len(a) >= arity else curry(functools.partial(function, *a), arity - len(a))


volume = curry(lambda a, b, c: a * b * c, 3)
print(volume(2)(3)(4), volume(2, 3)(4), volume(2)(3, 4), functools.WRAPPER_ASSIGNMENTS[:3])
