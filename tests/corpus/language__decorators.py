"""Decorators: with and without arguments, stacked, on classes and methods, as classes, preserving metadata."""
import functools


def traced(function):
    calls = []

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        shown = [repr(a) for a in args] + [f"{k}={v!r}" for k, v in kwargs.items()]
        result = function(*args, **kwargs)
        calls.append(f"{function.__name__}({', '.join(shown)}) = {result!r}")
        return result

    wrapper.calls = calls
    return wrapper


@traced
def power(base: int, exponent: int = 2) -> int:
    """Raise base to exponent."""
    return base**exponent


power(3)
power(2, exponent=10)
print(power.calls)
print(power.__name__, power.__doc__, sorted(power.__annotations__), power.__wrapped__(5))


def retry(times, on=Exception):
    """A decorator factory."""

    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args):
            errors = []
            for attempt in range(1, times + 1):
                try:
                    return f"{function(*args, attempt=attempt)} after {errors}"
                except on as error:
                    errors.append(str(error))
            raise RuntimeError(f"{function.__name__} failed {times} times: {errors}")

        return wrapper

    return decorate


@retry(3, on=ValueError)
def flaky(limit, attempt):
    if attempt < limit:
        raise ValueError(f"no {attempt}")
    return f"ok at {attempt}"


print(flaky(1), "|", flaky(3))
try:
    flaky(9)
except RuntimeError as error:
    print(error)


def tag(name):
    return lambda function: lambda *a: f"<{name}>{function(*a)}</{name}>"


@tag("b")
@tag("i")
def text(value):
    return value


print(text("stacked"))


class CountCalls:
    """A class as a decorator, which also binds as a method."""

    def __init__(self, function):
        functools.update_wrapper(self, function)
        self.function = function
        self.count = 0

    def __call__(self, *args, **kwargs):
        self.count += 1
        return self.function(*args, **kwargs)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)


class Greeter:
    def __init__(self, name):
        self.name = name

    @CountCalls
    def hello(self, punctuation="."):
        return f"hello {self.name}{punctuation}"


print(Greeter("ann").hello(), Greeter("bob").hello("!"), Greeter.hello.count, Greeter.hello.__name__)


def optional(function=None, *, prefix="> "):
    """Usable both as @optional and @optional(...)."""
    if function is None:
        return functools.partial(optional, prefix=prefix)
    return functools.wraps(function)(lambda *a: prefix + function(*a))


@optional
def plain():
    return "plain"


@optional(prefix="# ")
def fancy():
    return "fancy"


print(plain(), fancy(), fancy.__name__)


def add_repr(cls):
    """A class decorator that adds a method and wraps another."""
    cls.__repr__ = lambda self: f"{cls.__name__}({', '.join(f'{k}={v}' for k, v in vars(self).items())})"
    original = cls.__init__

    @functools.wraps(original)
    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        self.ready = True

    cls.__init__ = init
    return cls


@add_repr
class Box:
    def __init__(self, size):
        self.size = size


print(Box(4))


def typed(**types):
    def decorate(function):
        def wrapper(**kwargs):
            wrong = {k: type(v).__name__ for k, v in kwargs.items() if not isinstance(v, types.get(k, object))}
            return f"rejected {wrong}" if wrong else function(**kwargs)

        return wrapper

    return decorate


@typed(count=int, name=str)
def label(count, name):
    return name * count


print(label(count=2, name="ab"), label(count="2", name=3))

handlers = {}


def route(path):
    def register(function):
        handlers[path] = function
        return function

    return register


@route("/")
@route("/index")
def index():
    return "home"


@route("/about")
def about():
    return "about us"


print({path: handlers[path]() for path in sorted(handlers)}, index is handlers["/"])
decorators = [tag("u"), str.upper]


@decorators[0]
@(lambda f: lambda v: decorators[1](f(v)))
def anything(value):
    return f"any {value} expression"


print(anything("decorator"))
