"""Ends with sys.exit(7) from nested code: finally blocks run, stdout is kept, the exit status is the code."""
import contextlib
import sys


def codes(action):
    """What SystemExit carries for different ways of leaving."""
    try:
        action()
    except SystemExit as error:
        return error.code
    return "did not exit"


class Quit(SystemExit):
    pass


def raise_quit():
    raise Quit(5)


print(codes(lambda: sys.exit()), codes(lambda: sys.exit(0)), codes(lambda: sys.exit(3)))
print(codes(lambda: sys.exit("message")), codes(lambda: sys.exit([1, 2])), codes(raise_quit), codes(lambda: None))
print(issubclass(SystemExit, Exception), issubclass(SystemExit, BaseException))


def not_caught_by_exception():
    try:
        sys.exit(4)
    except Exception:
        return "caught by Exception"
    except BaseException as error:
        return f"caught by BaseException: {error.code}"


print(not_caught_by_exception())


@contextlib.contextmanager
def stage(name):
    print("begin", name)
    try:
        yield name
    except SystemExit as error:
        print("leaving", name, "with", error.code)
        raise
    finally:
        print("end", name)


def generator():
    try:
        yield 1
        yield 2
    finally:
        print("generator closed")


def work(limit):
    with stage("outer"), stage("inner"):
        numbers = generator()
        for n in numbers:
            print("n", n)
            if n >= limit:
                numbers.close()
                sys.exit(limit + 5)


try:
    work(9)
    work(2)
finally:
    print("last words")
print("never printed")
