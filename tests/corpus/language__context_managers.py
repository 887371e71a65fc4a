"""Context managers: the protocol, suppression, ExitStack, contextmanager, nesting order, reuse, async cousins left out."""
import contextlib
import io

trace = []


class Step:
    def __init__(self, name, swallow=()):
        self.name, self.swallow = name, swallow

    def __enter__(self):
        trace.append(f"+{self.name}")
        return self

    def __exit__(self, kind, value, traceback):
        trace.append(f"-{self.name}" + (f"({kind.__name__})" if kind else ""))
        assert (kind is None) == (value is None) == (traceback is None)
        return kind is not None and issubclass(kind, self.swallow)


def flush(label):
    print(f"{label}:", " ".join(trace))
    trace.clear()


with Step("a") as a, Step("b"):
    trace.append(a.name * 2)
flush("nested")

with (
    Step("outer", KeyError),
    Step("inner"),
):
    raise KeyError("gone")
flush("swallowed outside")

try:
    with Step("only", KeyError):
        raise ValueError("passes through")
except ValueError as error:
    trace.append(str(error))
flush("not swallowed")


def leave_early():
    for n in range(3):
        with Step(f"loop{n}"):
            if n == 0:
                continue
            return n


print("returned", leave_early())
flush("return inside with")


@contextlib.contextmanager
def transaction(store):
    backup = dict(store)
    try:
        yield store
    except LookupError as error:
        store.clear()
        store.update(backup)
        trace.append(f"rolled back: {error.args[0]}")
    else:
        trace.append("committed")
    finally:
        trace.append("closed")


store = {"x": 1}
with transaction(store) as s:
    s["x"] = 2
with transaction(store) as s:
    s["y"] = 9
    s["absent"]
print(store)
flush("contextmanager")


@transaction(store)
def as_decorator():
    store["z"] = 26
    return "done"


print(as_decorator(), as_decorator(), store)
flush("as a decorator")


@contextlib.contextmanager
def broken():
    if trace is None:
        yield


try:
    with broken():
        pass
except RuntimeError as error:
    print("no yield:", error)

with contextlib.ExitStack() as stack:
    steps = [stack.enter_context(Step(n)) for n in "xyz"]
    stack.callback(trace.append, "callback")
    stack.push(lambda kind, *rest: kind is ZeroDivisionError)
    trace.append("body")
    1 / 0
flush("exit stack")

with contextlib.ExitStack() as stack:
    stack.enter_context(Step("kept open"))
    handover = stack.pop_all()
trace.append("stack left")
handover.close()
flush("pop_all")


class Failing(Step):
    def __exit__(self, kind, value, traceback):
        super().__exit__(kind, value, traceback)
        raise RuntimeError(f"exit of {self.name}")


try:
    with Failing("one"), Failing("two"):
        raise KeyError("first")
except RuntimeError as error:
    chain = []
    while error:
        chain.append(repr(error))
        error = error.__context__
    print(" <- ".join(chain))
flush("failing exits")

buffer = io.StringIO()
with contextlib.redirect_stdout(buffer):
    print("hidden", end="!")
print("captured:", repr(buffer.getvalue()))

with contextlib.suppress(FileNotFoundError, ZeroDivisionError):
    1 / 0
    print("never")

with contextlib.closing(io.StringIO("text")) as stream:
    print(stream.read(), stream.closed)
print(stream.closed)

with contextlib.nullcontext("value") as value:
    print("null:", value)


class Indenter(contextlib.ContextDecorator):
    """Reentrant, and usable as a decorator."""

    depth = 0

    def __enter__(self):
        Indenter.depth += 1
        return self

    def __exit__(self, *details):
        Indenter.depth -= 1

    def print(self, text):
        print("  " * Indenter.depth + text)


indent = Indenter()
with indent:
    indent.print("one")
    with indent, indent:
        indent.print("three")


@indent
def decorated():
    indent.print("from a decorated function")


decorated()
try:
    with object():
        pass
except TypeError as error:
    print(type(error).__name__)
print("depth back to", Indenter.depth)
