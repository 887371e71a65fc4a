"""Values whose methods fail in every way, by names such as `__repr__ raises SystemExit`."""


class Own(BaseException):
    pass


class Unprintable(Exception):
    def __str__(self):
        raise Own("unprintable")

    __repr__ = __str__


class Endless(Exception):
    def __str__(self):
        return str(self)


class Number(Exception):
    def __str__(self):
        return 5


class Looks(type):
    def __getattribute__(self, name):
        raise Hidden


class Hidden(Exception, metaclass=Looks):
    pass


class Sealed(Exception):
    """One that nothing can be learned of."""

    def __getattribute__(self, name):
        raise Sealed

    __str__ = __repr__ = __getattribute__
    __cause__ = __context__ = __traceback__ = __suppress_context__ = args = property(__str__)


class Exits(SystemExit):
    code = property(lambda self: 1 / 0)


class Text(str):
    """A text that lies about itself."""

    def __len__(self):
        return -1

    def __getitem__(self, at):
        raise Own("no item")

    def __str__(self):
        raise Own("no text")

    def encode(self, *arguments):
        return 5

    __iter__ = __eq__ = __contains__ = strip = splitlines = partition = isascii = __str__
    __hash__ = str.__hash__


def raising(error):
    def act(*arguments, **named):
        raise error

    return act


def returning(value):
    return lambda *arguments, **named: value


def forever(self, *arguments, **named):
    return repr(self)


def circular():
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    return one


ACTS = {
    **{
        f"raises {type.__dict__['__name__'].__get__(kind)}": raising(kind("no"))
        for kind in (
            *(ValueError, SystemExit, KeyboardInterrupt, GeneratorExit, RecursionError),
            *(MemoryError, StopIteration, StopAsyncIteration, NotImplementedError),
            *(AttributeError, TypeError, Own, Unprintable, Endless, Number, Hidden, Exits),
        )
    },
    "raises Sealed": raising(Sealed()),
    "raises a class": raising(Sealed),
    "raises a group": raising(ExceptionGroup("no", [ValueError("no"), Unprintable()])),
    "raises a group of exits": raising(BaseExceptionGroup("no", [SystemExit(3)])),
    "raises a circle": raising(circular()),
    "raises a surrogate": raising(ValueError("\ud800")),
    "raises a megabyte": raising(ValueError("x" * 2**20)),
    "raises lines": raising(ValueError("\n\x1b[2J\n")),
    "raises a syntax error": raising(SyntaxError("no", (5, "x", object(), b"\xff"))),
    "raises a number of errors": raising(OSError(2, "no", 5, None, object())),
    "raises a unicode error": raising(UnicodeDecodeError("utf-8", b"\xff" * 9, 5, 2**30, "no")),
    "calls itself": forever,
    "returns None": returning(None),
    "returns a number": returning(5),
    "returns bytes": returning(b"\xff"),
    "returns a surrogate": returning("a\ud800z"),
    "returns a null": returning("a\0z"),
    "returns a Text": returning(Text("text")),
    "returns megabytes": returning("x" * 2**22),
    "returns more than there is": lambda *_, **__: "x" * (2**31 - 100),
    "returns an empty tuple": returning(()),
    "returns odd keys": returning({5: 6, None: Text("x"), Text("text/html"): "b"}),
    "returns lies": returning({"text/plain": 5, "image/png": "?", "text/html": Text("x")}),
}
METHODS = (
    *("__repr__", "__str__", "__eq__", "__hash__", "__bool__", "__len__", "__iter__"),
    *("__getattr__", "__getattribute__", "__class__", "__dict__", "__reduce__", "__reduce_ex__"),
    *("__await__", "__format__", "__array__", "__dataclass_fields__", "__pydantic_fields__"),
    *("tolist", "_repr_html_", "_repr_png_", "_repr_json_", "_repr_mimebundle_"),
    *("_ipython_display_", "_repr_markdown_", "__module__"),
)
PROPERTIES = ("__class__", "__dict__", "__module__")


def made(method, act):
    act = ACTS[act]
    value = property(act) if method in PROPERTIES else act
    return type("Value", (), {method: value})()


def odd(name):
    method, act = name.split(" ", 1)
    if method == "[__repr__]":
        return [made("__repr__", act)]
    if method == "type":
        return type("Kind", (type,), {"__getattribute__": ACTS[act]})("Value", (), {})()
    if method == "class":
        methods = dict.fromkeys(("__repr__", "__len__", "__call__", "__instancecheck__"), ACTS[act])
        return type("Kind", (type,), methods)("Value", (), {})
    return made(method, act)


NAMES = [
    f"{method} {act}" for method in (*METHODS, "[__repr__]", "type", "class") for act in ACTS
]
