"""The work of the scenario `compute`: calls, integers, a dict and strings, on nothing but the language."""


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def count(steps):
    totals = {}
    for step in range(steps):
        key = "key " + str(step % 1000)
        totals[key] = totals.get(key, 0) + step
    return len(totals) + totals["key 7"]


fib(22) + count(200_000)
