"""Scopes: closures, nonlocal, global, late binding, class bodies, comprehension scope, exec namespaces."""

level = "module"


def counter(start=0, step=1):
    value = start
    history = []

    def advance(times=1):
        nonlocal value
        for _ in range(times):
            value += step
            history.append(value)
        return value

    def reset():
        nonlocal value
        value = start

    advance.reset = reset
    advance.history = history
    return advance


a, b = counter(), counter(100, -10)
a(), a(3), b(2)
print(a(), b(), a.history, b.history)
b.reset()
print("after reset:", b(), a(0), "free variables:", sorted(a.__code__.co_freevars))
print("cells:", [type(c.cell_contents).__name__ for c in a.__closure__])

late = [lambda x: x * n for n in range(4)]
early = [lambda x, n=n: x * n for n in range(4)]
made = [(lambda n: lambda x: x * n)(n) for n in range(4)]
print("late:", [f(10) for f in late], "early:", [f(10) for f in early], "made:", [f(10) for f in made])


def shadows():
    def outer():
        level = "outer"

        def inner():
            return level

        def rebinding():
            level = "local"
            return level

        def global_view():
            global level
            return level

        return inner(), rebinding(), inner(), global_view()

    return outer()


print(shadows())


class Body:
    """Class bodies are not enclosing scopes for the functions in them."""

    level = "class"
    seen = level

    def method(self):
        return level, self.level

    doubled = [item * 2 for item in (1, 2)]
    try:
        filtered = [level + str(i) for i in range(1)]
    except NameError:
        filtered = "NameError"


print(Body.seen, Body().method(), Body.doubled, Body.filtered)


def unbound(flag):
    if flag:
        value = 1
    try:
        return value
    except UnboundLocalError as error:
        return f"{type(error).__name__} is a NameError: {isinstance(error, NameError)}"


print(unbound(True), "|", unbound(False))


def exception_name():
    error = "kept"
    try:
        1 / 0
    except ZeroDivisionError as error:
        pass
    try:
        return error
    except UnboundLocalError:
        return "name deleted after except"


print(exception_name())

x = "outside"
squares = [x * x for x in range(4)]
total = [last := n for n in range(5)]
print("comprehension variable does not leak:", x, "| walrus does:", last, squares)


def memo_default(key, cache={}):
    cache[key] = cache.get(key, 0) + 1
    return dict(cache)


print(memo_default("a"), memo_default("b"), memo_default("a"), memo_default.__defaults__)

namespace = {"n": 5}
exec("result = [n * i for i in range(3)]\ndef twice(v): return v * n * 2", namespace)
print(namespace["result"], namespace["twice"](3), eval("n + m", namespace, {"m": 7}))


def compose(*functions):
    def composed(value):
        for function in reversed(functions):
            value = function(value)
        return value

    return composed


def fix(f):
    """The Z combinator: recursion without a name."""
    return (lambda x: f(lambda *v: x(x)(*v)))(lambda x: f(lambda *v: x(x)(*v)))


print(compose(str, abs, int)("-12"), fix(lambda fact: lambda n: 1 if n < 2 else n * fact(n - 1))(20))


def account(balance):
    def deposit(amount):
        nonlocal balance
        balance += amount
        return balance

    def report():
        return {name: cell for name, cell in locals().items()} | {"balance": balance}

    return deposit, report


deposit, report = account(10)
deposit(5)
print(report())
del x
try:
    x
except NameError as error:
    print("deleted global:", error.name)
print("globals write:", globals().update(fresh="value"), fresh)  # noqa: F821
