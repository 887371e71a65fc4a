"""Function calls: positional-only, keyword-only, defaults, * and ** unpacking, binding, recursion, introspection."""
import functools
import inspect


def everything(a, b=2, /, c=3, *args, d, e=5, **kwargs):
    return a, b, c, args, d, e, kwargs


print(everything(1, d=4))
print(everything(1, 20, 30, 40, 50, d=60, e=70, f=80))
print(everything(*[1, 2], *(3, 4), **{"d": 5}, **{"z": 6, "a": "keyword a is free"}))
print(inspect.signature(everything))

bad_calls = {
    "no arguments": lambda: everything(),
    "missing keyword": lambda: everything(1),
    "positional only by name": lambda: (lambda a, /: a)(a=1),
    "repeated": lambda: (lambda a: a)(1, **{"a": 2}),
    "too many": lambda: (lambda a: a)(1, 2),
    "not a mapping": lambda: everything(1, **3),
    "not iterable": lambda: everything(*3, d=1),
    "not callable": lambda: everything(1, d=2)(),
    "non-string key": lambda: everything(1, d=2, **{3: 4}),
}
for name, call in bad_calls.items():
    try:
        call()
    except TypeError as error:
        print(f"{name}: {type(error).__name__}")

signature = inspect.signature(everything)
bound = signature.bind(1, d=9, extra="x")
print(bound.arguments)
bound.apply_defaults()
print(bound.args, bound.kwargs)
print({name: p.kind.name for name, p in signature.parameters.items()})


def accumulate(item, into=[]):
    into.append(item)
    return into


def fresh(item, into=None):
    into = [] if into is None else into
    into.append(item)
    return into


print(accumulate(1), accumulate(2), fresh(1), fresh(2), accumulate.__defaults__)


def swap(*, left, right):
    return {"left": right, "right": left}


print(swap(**swap(left=1, right=2)), swap.__kwdefaults__, (lambda *, k=1: k).__kwdefaults__)

order = []


def mark(value):
    order.append(value)
    return value


everything(mark("p"), *[mark("s1"), mark("s2")], d=mark("d"), **{mark("key"): mark("value")})
print("evaluation order:", order)

add = lambda x, y=10: x + y  # noqa: E731
print(add(1), add(1, 2), (lambda *a, **k: (len(a), sorted(k)))(1, 2, x=3), add.__name__)
power_of = functools.partial(pow, 2)
print([power_of(n) for n in range(5)], functools.partial(everything, 1, d=2)(7, e=8))


class Multiplier:
    def __init__(self, by):
        self.by = by

    def times(self, value):
        return value * self.by

    __call__ = times


double = Multiplier(2)
method = double.times
print(method(4), double(5), Multiplier.times(double, 6), method.__self__ is double, list(map(double, "ab")))


def ackermann(m, n):
    if m == 0:
        return n + 1
    return ackermann(m - 1, 1 if n == 0 else ackermann(m, n - 1))


def hanoi(n, a="A", b="B", c="C"):
    return [] if n == 0 else hanoi(n - 1, a, c, b) + [f"{a}{c}"] + hanoi(n - 1, b, a, c)


def is_even(n):
    return True if n == 0 else is_odd(n - 1)


def is_odd(n):
    return False if n == 0 else is_even(n - 1)


print(ackermann(2, 3), hanoi(3), is_even(50), is_odd(50))


def runaway(n=0):
    return runaway(n + 1)


try:
    runaway()
except RecursionError as error:
    print("caught", type(error).__name__, isinstance(error, RuntimeError))
print("still fine after it:", ackermann(1, 1))


def documented(x: "int", *rest: str) -> dict[str, int]:
    """Say what it does.

    And more.
    """
    return {r: x for r in rest}


print(documented(1, "a", "b"), inspect.getdoc(documented).splitlines(), documented.__annotations__["return"])
print(documented.__code__.co_argcount, documented.__code__.co_varnames[:2], documented.__qualname__)
print([f.__qualname__ for f in (Multiplier.times, double.times)], callable(double), callable(3))
print(max([3, -5, 2], key=abs), min("bca", default="z"), max([], default="none"), sorted("bAc", key=str.lower, reverse=True))
print((lambda: (yield))().__class__.__name__, [*(lambda: (yield 1))()], (lambda n: n and n * 2)(0))
