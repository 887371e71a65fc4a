"""Exception groups: except*, split and subgroup, nesting, partial handling, notes, derive, groups from code."""


def leaves(group):
    return [
        leaves(e) if isinstance(e, BaseExceptionGroup) else f"{type(e).__name__}:{e}" for e in group.exceptions
    ]


def build():
    return ExceptionGroup(
        "batch",
        [
            ValueError("v1"),
            TypeError("t1"),
            ExceptionGroup("inner", [ValueError("v2"), KeyError("k1"), ExceptionGroup("deep", [OSError("o1")])]),
        ],
    )


group = build()
print(group.message, len(group.exceptions), leaves(group), isinstance(group, Exception))
matched, rest = group.split(ValueError)
print("split:", leaves(matched), "|", leaves(rest))
print("subgroup:", leaves(group.subgroup(lambda e: "1" in str(e) and not isinstance(e, ExceptionGroup))))
print("nothing:", group.subgroup(ZeroDivisionError), group.split(Exception)[1])

handled = []
try:
    raise build()
except* ValueError as values:
    handled.append(("values", leaves(values)))
except* (TypeError, KeyError) as others:
    handled.append(("others", leaves(others)))
except* OSError as os_errors:
    handled.append(("os", leaves(os_errors)))
else:
    handled.append("else")
finally:
    handled.append("finally")
for item in handled:
    print(item)

try:
    try:
        raise build()
    except* ValueError:
        print("handled the values")
except ExceptionGroup as remaining:
    print("left over:", remaining.message, leaves(remaining))

try:
    raise ValueError("naked")
except* ValueError as wrapped:
    print("wrapped:", type(wrapped).__name__, repr(wrapped.message), leaves(wrapped))

try:
    try:
        raise build()
    except* TypeError as types:
        raise RuntimeError("while handling types") from types
    except* ValueError as values:
        raise
    except* (KeyError, OSError):
        pass
except ExceptionGroup as combined:
    print("combined:", leaves(combined))
    runtime = next(e for e in combined.exceptions if isinstance(e, RuntimeError))
    print("cause kept:", leaves(runtime.__cause__))


class Rejected(ExceptionGroup):
    """derive() keeps the subclass and its state through split."""

    def __new__(cls, message, exceptions, source="unknown"):
        self = super().__new__(cls, message, exceptions)
        self.source = source
        return self

    def derive(self, exceptions):
        return Rejected(self.message, exceptions, self.source)


rejected = Rejected("rejected rows", [ValueError("row 1"), KeyError("row 2"), ValueError("row 5")], "orders.csv")
rejected.add_note("checked twice")
bad_values, bad_keys = rejected.split(ValueError)
print(type(bad_values).__name__, bad_values.source, leaves(bad_values), bad_keys.__notes__)


def validate(rows):
    errors = []
    for number, row in enumerate(rows, 1):
        try:
            name, age = row.split(",")
            if not name:
                raise KeyError(f"row {number} has no name")
            yield name, int(age)
        except (ValueError, KeyError) as error:
            error.add_note(f"in row {number}: {row!r}")
            errors.append(error)
    if errors:
        raise ExceptionGroup(f"{len(errors)} bad rows", errors)


good = []
try:
    for pair in validate(["ann,30", "bob", ",5", "cy,x1", "dee,41"]):
        good.append(pair)
except* KeyError as missing:
    print("missing:", [e.__notes__ for e in missing.exceptions])
except* ValueError as wrong:
    print("wrong:", [e.__notes__[0] for e in wrong.exceptions])
print("good:", good)

for arguments in (("m", []), ("m", [3]), (5, [ValueError()]), ("m", [KeyboardInterrupt()])):
    try:
        ExceptionGroup(*arguments)
    except (TypeError, ValueError) as error:
        print("refused:", type(error).__name__)
base = BaseExceptionGroup("base", [KeyboardInterrupt(), ValueError("x")])
print(type(base).__name__, isinstance(base, Exception), type(BaseExceptionGroup("b", [ValueError()])).__name__)
try:
    try:
        raise base
    except* ValueError:
        print("took the ValueError out")
except BaseExceptionGroup as rest:
    print("still:", [type(e).__name__ for e in rest.exceptions])


def flow(n):
    results = []
    for i in range(n):
        try:
            if i % 2:
                raise ValueError(i)
            results.append(i)
        except* ValueError as error:
            results.append(f"odd {error.exceptions[0].args[0]}")
    return results


print(flow(5))
try:
    compile("try: pass\nexcept* ValueError: pass\nexcept KeyError: pass", "s", "exec")
except SyntaxError as error:
    print("no mixing:", type(error).__name__)
