"""Exceptions: hierarchies, chaining with from, context, notes, finally semantics, custom attributes, re-raising."""
import contextlib


class AppError(Exception):
    code = 1

    def __init__(self, message, **details):
        super().__init__(message)
        self.details = details

    def __str__(self):
        extra = ", ".join(f"{k}={v}" for k, v in sorted(self.details.items()))
        return f"[{self.code}] {self.args[0]}" + (f" ({extra})" if extra else "")


class NotFound(AppError, LookupError):
    code = 404


def find(table, key):
    try:
        return table[key]
    except KeyError as error:
        raise NotFound("no such entry", key=key) from error


def chain(error):
    parts = []
    while error is not None:
        parts.append(f"{type(error).__name__}({error})")
        if error.__cause__ is not None:
            parts.append("caused by")
            error = error.__cause__
        elif error.__context__ is not None and not error.__suppress_context__:
            parts.append("while handling")
            error = error.__context__
        else:
            error = None
    return " ".join(parts)


for kind in (NotFound, LookupError, AppError):
    try:
        find({"a": 1}, "b")
    except kind as error:
        print(kind.__name__, "->", chain(error), error.details)

try:
    try:
        int("x1")
    except ValueError:
        [][3]
except IndexError as error:
    print(chain(error))
try:
    try:
        int("x1")
    except ValueError:
        raise RuntimeError("clean") from None
except RuntimeError as error:
    print(chain(error), error.__suppress_context__, type(error.__context__).__name__)

try:
    raise ValueError("bad", 42, None)
except ValueError as error:
    error.add_note("first note")
    error.add_note("second note")
    print(error.args, error.__notes__, repr(error))

steps = []


def every_clause(action):
    try:
        steps.append("try")
        if action == "raise":
            raise KeyError(action)
        if action == "return":
            return "from try"
    except KeyError:
        steps.append("except")
        return "from except"
    else:
        steps.append("else")
    finally:
        steps.append("finally")
    return "after"


for action in ("nothing", "raise", "return"):
    steps.clear()
    print(action, "->", every_clause(action), steps)


def unwinding(depth):
    try:
        if depth == 0:
            raise OverflowError("bottom")
        unwinding(depth - 1)
    finally:
        steps.append(depth)


steps.clear()
with contextlib.suppress(OverflowError):
    unwinding(4)
print("unwound in order", steps)


def loop_with_finally():
    seen = []
    for n in range(6):
        try:
            if n == 1:
                continue
            if n == 4:
                break
            seen.append(n)
        finally:
            seen.append(f"f{n}")
    return seen


print(loop_with_finally())


def reraise():
    try:
        raise TypeError("original")
    except TypeError as error:
        saved = error
        try:
            raise
        except TypeError as again:
            return again is saved, again.__context__


print("bare raise:", reraise())
cases = {
    "attribute": lambda: (3).nothing, "key": lambda: {}["k"], "index": lambda: ()[0], "name": lambda: nothing,  # noqa: F821
    "type": lambda: 1 + "a", "value": lambda: int("z"), "zero": lambda: 1 // 0, "import": lambda: __import__("no_such_module"),
    "assert": lambda: (_ for _ in ()).throw(AssertionError("a")), "stop": lambda: next(iter(())), "overflow": lambda: 2.0**5000,
    "unicode": lambda: b"\xff".decode(), "encode": lambda: "é".encode("ascii"), "lookup": lambda: "".encode("no-such"),
    "buffer": lambda: memoryview(b"ab").cast("I"), "syntax": lambda: compile("a b", "s", "eval"), "os": lambda: open("/no/such/file"),
    "indent": lambda: compile("if 1:\na", "s", "exec"), "not error": lambda: exec("raise 3"), "hash": lambda: {[]: 1},
}
for name, action in cases.items():
    try:
        action()
    except Exception as error:
        print(f"{name}: {' < '.join(c.__name__ for c in type(error).__mro__[:-2])}")
try:
    "abc\udc80".encode()
except UnicodeEncodeError as error:
    print(error.encoding, error.start, error.end, error.object[error.start :] == "\udc80")
try:
    object().missing
except AttributeError as error:
    print(error.name, type(error.obj).__name__)
try:
    raise StopIteration("value")
except StopIteration as error:
    print(error.value)
try:
    raise KeyboardInterrupt("by hand")
except Exception:
    print("never")
except BaseException as error:
    print(type(error).__name__, isinstance(error, Exception))
