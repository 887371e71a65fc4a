"""Generators: laziness, send, throw, close, yield from, return values, pipelines, coroutine-style state."""
import itertools


def running_average():
    total, count, average = 0, 0, None
    while True:
        try:
            value = yield average
        except ValueError as error:
            log.append(f"ignored {error}")
            continue
        total, count = total + value, count + 1
        average = total / count


log = []
averager = running_average()
next(averager)
print([averager.send(v) for v in (10, 20, 60)], averager.throw(ValueError("noise")), averager.send(30), log)


def resource(name, events):
    events.append(f"open {name}")
    try:
        for n in itertools.count():
            yield f"{name}{n}"
    except GeneratorExit:
        events.append(f"closing {name}")
        raise
    finally:
        events.append(f"closed {name}")


events = []
r = resource("r", events)
print(events, next(r), next(r))
r.close()
r.close()
print(events, next(r, "exhausted"))


def inner(n):
    received = []
    for i in range(n):
        received.append((yield i))
    return received


def outer():
    first = yield from inner(2)
    second = yield from inner(1)
    yield from "ab"
    return first + second


def drive(generator, *values):
    out, values = [next(generator)], iter(values)
    try:
        while True:
            out.append(generator.send(next(values, None)))
    except StopIteration as stop:
        return out, stop.value


print(drive(outer(), "x", "y", "z"))


def delegate():
    while True:
        try:
            yield from inner(3)
        except KeyError as error:
            yield f"caught {error.args[0]} outside"
        else:
            return "finished"


d = delegate()
print(next(d), next(d), d.throw(KeyError("k")), next(d))


def stops():
    yield 1
    raise StopIteration("inside a generator becomes an error")


try:
    list(stops())
except RuntimeError as error:
    print(type(error).__name__, type(error.__cause__).__name__)


def flatten(tree):
    for item in tree:
        if isinstance(item, (list, tuple)):
            yield from flatten(item)
        else:
            yield item


print(list(flatten([1, [2, (3, [4, []]), 5], [[[6]]]])))


def primes():
    yield 2
    composites = {}
    for n in itertools.count(3, 2):
        step = composites.pop(n, None)
        if step is None:
            composites[n * n] = 2 * n
            yield n
        else:
            following = n + step
            while following in composites:
                following += step
            composites[following] = step


print(list(itertools.islice(primes(), 15)), next(p for p in primes() if p > 5000))


def lines(text):
    for number, line in enumerate(text.splitlines(), 1):
        log.append(f"read {number}")
        yield line


def parse(source):
    for line in source:
        key, separator, value = line.partition("=")
        if separator:
            yield key.strip(), int(value)


log.clear()
pipeline = parse(lines("a = 1\nskip\nb=2\nc=3\nd=4"))
print(dict(itertools.islice(pipeline, 2)), log)


def permutations(items):
    if not items:
        yield ()
    for i, item in enumerate(items):
        for rest in permutations(items[:i] + items[i + 1 :]):
            yield (item, *rest)


print(["".join(p) for p in permutations("abc")])
squares = (n * n for n in range(10**9))
print(next(squares), next(squares), 144 in squares, next(squares))


class Tree:
    def __init__(self, value, left=None, right=None):
        self.value, self.left, self.right = value, left, right

    def __iter__(self):
        if self.left:
            yield from self.left
        yield self.value
        if self.right:
            yield from self.right


print(list(Tree(4, Tree(2, Tree(1), Tree(3)), Tree(6, Tree(5)))))


def scheduler(*tasks):
    """Round robin over generators, a few lines of cooperative multitasking."""
    queue, trace = list(tasks), []
    while queue:
        name, task = queue.pop(0)
        try:
            trace.append(f"{name}:{next(task)}")
            queue.append((name, task))
        except StopIteration as stop:
            trace.append(f"{name} returned {stop.value}")
    return trace


def countdown(n):
    while n:
        yield n
        n -= 1
    return "liftoff"


print(scheduler(("a", countdown(2)), ("b", countdown(3))))
