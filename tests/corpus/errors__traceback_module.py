"""The traceback module over real stacks: frame names, line numbers relative to functions, chains, formatted ends."""
import sys
import traceback


def level_three(value):
    return 10 / value


def level_two(value):
    return level_three(value - 1)


def level_one(value):
    try:
        return level_two(value)
    except ZeroDivisionError as error:
        raise RuntimeError(f"level_one({value}) failed") from error


def relative(frame_summary):
    """A line number counted from the start of the function, stable under edits above it."""
    function = globals().get(frame_summary.name)
    return frame_summary.lineno - function.__code__.co_firstlineno if function else None


try:
    level_one(1)
except RuntimeError as error:
    caught = error

frames = traceback.extract_tb(caught.__traceback__)
print("outer frames:", [(f.name, relative(f)) for f in frames])
inner = traceback.extract_tb(caught.__cause__.__traceback__)
print("inner frames:", [(f.name, relative(f)) for f in inner])
print("only:", traceback.format_exception_only(RuntimeError, caught))

report = traceback.TracebackException.from_exception(caught)
print("cause:", report.__cause__.exc_type.__name__ if sys.version_info < (3, 13) else report.__cause__.exc_type_str)
print("stack sizes:", len(report.stack), len(report.__cause__.stack))
text = "".join(report.format())
print("lines that matter:")
for line in text.splitlines():
    if not line.startswith(" ") and line:
        print("   ", line)
print(text.index("ZeroDivisionError") < text.index("direct cause") < text.index("RuntimeError"))

tb = caught.__traceback__
walked = []
while tb:
    walked.append((tb.tb_frame.f_code.co_name, sorted(tb.tb_frame.f_locals)[:1] if tb.tb_frame.f_code.co_name != "<module>" else []))
    tb = tb.tb_next
print("walked:", walked)
print("from walk_tb:", [frame.f_code.co_name for frame, line in traceback.walk_tb(caught.__cause__.__traceback__)])


def current_stack():
    return [f.name for f in traceback.extract_stack() if f.name in ("current_stack", "caller")]


def caller():
    return current_stack()


print("stack:", caller())


def who_called_me():
    return sys._getframe(1).f_code.co_name


def some_function():
    return who_called_me()


print("frame inspection:", some_function())


def recursive(n):
    if n == 0:
        raise ValueError("deep")
    recursive(n - 1)


try:
    recursive(12)
except ValueError as error:
    stack = traceback.extract_tb(error.__traceback__)
    print("recursion:", len(stack), {f.name for f in stack[1:]}, len({f.lineno for f in stack[1:-1]}))
    limited = traceback.extract_tb(error.__traceback__, limit=-2)
    print("limited:", [relative(f) for f in limited])

try:
    exec(compile("x = 1\n\ndef f():\n    return x.missing\nf()\n", "generated.py", "exec"), {})
except AttributeError as error:
    print([(f.filename, f.name, f.lineno) for f in traceback.extract_tb(error.__traceback__)[1:]])

try:
    compile("good = 1\nbad = = 2\n", "typed.py", "exec")
except SyntaxError as error:
    print("syntax:", error.filename, error.lineno, error.text.strip())
try:
    raise ValueError("with notes")
except ValueError as error:
    error.add_note("remember this")
    error.add_note("two\nlines")
    print(traceback.format_exception_only(error))

try:
    raise ExceptionGroup("several", [ValueError("one"), KeyError("two")])
except ExceptionGroup as error:
    shown = "".join(traceback.format_exception(error))
    kept = [line.strip(" |") for line in shown.splitlines()]
    print([line for line in kept if line.startswith(("ExceptionGroup:", "ValueError:", "KeyError:"))])

try:
    try:
        raise KeyError("a")
    finally:
        raise OSError("b")
except OSError as error:
    both = traceback.format_exception(error)
    print(sum("During handling" in part for part in both), sys.exc_info()[0].__name__)
print("outside:", sys.exc_info())


def with_locals():
    secret = [1, 2]
    return secret[9]


try:
    with_locals()
except IndexError as error:
    captured = traceback.TracebackException.from_exception(error, capture_locals=True)
    print(captured.stack[-1].locals)
caught = caught.with_traceback(None)
print("stripped:", caught.__traceback__, traceback.extract_tb(None))
