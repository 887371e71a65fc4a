"""itertools: every function, with the classic recipes built from them."""
import itertools as it
import operator
from collections import deque

take = lambda n, iterable: list(it.islice(iterable, n))  # noqa: E731
print(take(4, it.count(10, 2.5)), take(5, it.cycle("ab")), list(it.repeat("x", 3)), take(3, it.count(step=-1)))
print(list(it.accumulate([3, 1, 4, 1, 5])), list(it.accumulate([3, 1, 4], max)), list(it.accumulate([1, 2, 3], operator.mul, initial=100)), list(it.accumulate([])))
print(list(it.chain("ab", [1], range(2))), list(it.chain.from_iterable([[1, 2], "c", ()])), list(it.compress("abcdef", [1, 0, 1, 0, 1, 1])))
print(list(it.dropwhile(lambda n: n < 3, [1, 2, 5, 1])), list(it.takewhile(lambda n: n < 3, [1, 2, 5, 1])), list(it.filterfalse(str.isdigit, "a1b2")), list(it.starmap(pow, [(2, 3), (3, 2)])))
print([(k, "".join(g)) for k, g in it.groupby("aaabbca")], {k: list(g) for k, g in it.groupby(sorted(range(10), key=lambda n: n % 3), lambda n: n % 3)})
print(list(it.islice("abcdefg", 1, None, 2)), list(it.islice("abcdefg", 2)), list(it.islice(it.count(), 5, 8)), list(it.pairwise("abcd")), list(it.zip_longest("abc", [1], fillvalue="-")))
first, second, third = it.tee(iter("xyz"), 3)
print(next(first), next(first), list(second), list(first), list(third))
print(["".join(p) for p in it.permutations("abc")], list(it.permutations(range(3), 2)), len(list(it.permutations(range(6)))))
print(["".join(c) for c in it.combinations("abcd", 2)], list(it.combinations_with_replacement("ab", 3)), list(it.combinations([1], 2)), list(it.combinations("ab", 0)))
print(list(it.product("ab", range(2))), len(list(it.product("01", repeat=5))), list(it.product()), list(it.product("a", [])))
for bad in (lambda: it.islice([1], -1), lambda: it.permutations("a", -1), lambda: it.repeat("x", "y"), lambda: it.tee([], -1), lambda: next(it.chain())):
    try:
        bad()
    except (ValueError, TypeError, StopIteration) as error:
        print(type(error).__name__, end=" ")
print()


def chunked(iterable, n, strict=False):
    iterator = iter(iterable)
    while batch := tuple(it.islice(iterator, n)):
        if strict and len(batch) != n:
            raise ValueError("incomplete batch")
        yield batch


def sliding(iterable, n):
    iterator = iter(iterable)
    window = deque(it.islice(iterator, n), maxlen=n)
    if len(window) == n:
        yield tuple(window)
    for item in iterator:
        window.append(item)
        yield tuple(window)


def round_robin(*iterables):
    iterators = it.cycle(map(iter, iterables))
    for active in range(len(iterables), 0, -1):
        iterators = it.cycle(it.islice(iterators, active))
        try:
            for iterator in iterators:
                yield next(iterator)
        except StopIteration:
            continue


def powerset(items):
    items = list(items)
    return it.chain.from_iterable(it.combinations(items, r) for r in range(len(items) + 1))


def unique(iterable, key=None):
    seen = set()
    for item in iterable:
        k = item if key is None else key(item)
        if k not in seen:
            seen.add(k)
            yield item


def partition(predicate, iterable):
    a, b = it.tee(iterable)
    return list(it.filterfalse(predicate, a)), list(filter(predicate, b))


def interleave_sorted(*sequences):
    return [item for item, _ in it.groupby(sorted(it.chain(*sequences)))]


def run_lengths(iterable):
    return [(key, sum(1 for _ in group)) for key, group in it.groupby(iterable)]


def first_true(iterable, default=None, predicate=None):
    return next(filter(predicate, iterable), default)


def polynomial(roots):
    result = [1]
    for root in roots:
        result = [a + b for a, b in it.zip_longest(result + [0], [0] + [-root * c for c in result], fillvalue=0)]
    return result


print(list(chunked("abcdefg", 3)), list(sliding(range(5), 3)), list(sliding("ab", 3)), "".join(round_robin("ABC", "D", "EF")))
print(list(powerset("abc")), "".join(unique("AAAABBBCCDAABBB")), "".join(unique("ABBcCAD", str.lower)), partition(lambda n: n % 2, range(6)))
print(interleave_sorted([1, 3, 5], [2, 3, 6], [1]), run_lengths("aaabccd"), first_true([0, "", 3, 4]), first_true([], "none"), polynomial([1, 2, 3]))
try:
    list(chunked("abcd", 3, strict=True))
except ValueError as error:
    print("ValueError:", error)


def sieve(n):
    data = bytearray([1]) * (n // 2)
    data[:1] = b"\0"
    for p in range(3, int(n**0.5) + 1, 2):
        data[p * p // 2 :: p] = bytes(len(range(p * p // 2, len(data), p)))
    return [2] + [2 * i + 1 for i in it.compress(range(n // 2), data)]


def look_and_say(seed="1"):
    while True:
        yield seed
        seed = "".join(f"{len(list(group))}{digit}" for digit, group in it.groupby(seed))


def pythagorean(limit):
    return [(a, b, c) for a, b in it.combinations(range(1, limit), 2) for c in [round((a * a + b * b) ** 0.5)] if c < limit and a * a + b * b == c * c]


def gray(bits):
    return ["".join(map(str, code)) for code in sorted(it.product((0, 1), repeat=bits), key=lambda c: int("".join(map(str, it.accumulate(c, operator.xor))), 2))]


def money(total, coins):
    ways = [1] + [0] * total
    for coin in coins:
        for amount in range(coin, total + 1):
            ways[amount] += ways[amount - coin]
    return ways[total]


print(sieve(60), len(sieve(20000)), take(6, look_and_say()), pythagorean(30), gray(3), money(100, [1, 5, 10, 25, 50]))
letters = "sendory"
solution = next(
    dict(zip(letters, p)) for p in it.permutations([0, 2, 3, 4, 5, 6, 7, 8, 9], 7)
    if p[0] == 9 and p[4] == 0 and (9 + 1) * 1000 + (p[1] + 0) * 100 + (p[2] + p[5]) * 10 + p[3] + p[1] == 10000 + p[2] * 100 + p[1] * 10 + p[6]
)
print("SEND + MORE = MONEY:", solution, "with m = 1")
