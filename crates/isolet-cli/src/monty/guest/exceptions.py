"""Exceptions, as Monty's clients know them: a name, a message and, of some, further fields."""

import builtins
import importlib
import re

import _monty_failures as failures

# What the client has exceptions for; it refuses others.
EXCEPTIONS = frozenset(
    """
    Exception BaseException SystemExit KeyboardInterrupt ArithmeticError OverflowError
    ZeroDivisionError LookupError IndexError KeyError RuntimeError NotImplementedError
    RecursionError AttributeError FrozenInstanceError NameError UnboundLocalError ValueError
    UnicodeDecodeError UnicodeEncodeError json.JSONDecodeError tomllib.TOMLDecodeError ImportError
    ModuleNotFoundError OSError FileNotFoundError FileExistsError IsADirectoryError
    NotADirectoryError PermissionError io.UnsupportedOperation TimeoutError AssertionError
    MemoryError StopIteration SyntaxError TypeError re.PatternError binascii.Error
    binascii.Incomplete _csv.Error decimal.DecimalException decimal.Clamped
    decimal.InvalidOperation decimal.ConversionSyntax decimal.DivisionByZero
    decimal.DivisionImpossible decimal.DivisionUndefined decimal.Inexact decimal.InvalidContext
    decimal.Rounded decimal.Subnormal decimal.Overflow decimal.Underflow decimal.FloatOperation
    """.split()
)
MODULE_NAMES = {"json.decoder": "json", "_io": "io", "re._constants": "re", "_decimal": "decimal"}
MOST_SHOWN = 65_536  # characters of a repr, and of what an exception says of its cause
# What is more than a message: the client makes the exception of it.
EXACT = frozenset(["UnicodeDecodeError", "UnicodeEncodeError", "json.JSONDecodeError"])


def text(value):
    """The text, without what is no character."""
    return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()


def exception_name(kind):
    module = kind.__module__
    module = MODULE_NAMES.get(module, module)
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def describe_exception(error):
    """The name of an exception that the client has, and the message."""
    kind = type(error)
    if kind is KeyError and len(error.args) == 1 and type(error.args[0]) is str:
        message = error.args[0]
    else:
        try:
            message = str(error)
        except Exception:
            message = f"<{kind.__name__}, of which str() failed>"
    name = exception_name(kind)
    if name == "dataclasses.FrozenInstanceError":
        name = "FrozenInstanceError"
    if name not in EXCEPTIONS:
        # The client has no such exception, so that a base of it stands for it.
        base = next(base for base in kind.__mro__ if exception_name(base) in EXCEPTIONS)
        message = f"{kind.__qualname__}: {message}" if message else kind.__qualname__
        name = exception_name(base)
    return name, text(message)


def exception_data(error):
    """What an exception of those in `EXACT` consists of; None if that is too much to send."""
    if isinstance(error, UnicodeError):
        cause = error.object
        if len(cause) > MOST_SHOWN:
            return None
        # Of the same length, so that the place stays.
        cause = re.sub("[\ud800-\udfff]", "\ufffd", cause) if type(cause) is str else cause
        return ["unicode", error.encoding, cause, error.start, error.end, text(error.reason)]
    document = error.doc if type(error.doc) is str and len(error.doc) <= MOST_SHOWN else None
    place = [error.pos, error.lineno, error.colno]
    return ["json", text(error.msg), None if document is None else text(document), *place]


def exception_of(name, message, data=None):
    """The exception that a name of the client's stands for."""
    module, _, attribute = name.rpartition(".")
    if name == "FrozenInstanceError":
        module, attribute = "dataclasses", name
    kind = getattr(importlib.import_module(module) if module else builtins, attribute, None)
    if not (isinstance(kind, type) and issubclass(kind, BaseException)):
        kind = RuntimeError
    if data is not None:
        return exact_exception(kind, *data)
    error = None if message is None else failures.of_text(kind, message)
    if error is not None:
        return error
    for base in kind.__mro__:  # the nearest that wants no more than a message
        try:
            return base() if message is None else base(message)
        except TypeError:
            pass
    return RuntimeError(message)


def exact_exception(kind, shape, *fields):
    """An exception of those that are more than a message."""
    if shape == "unicode":
        return kind(*fields)
    message, document, position, line, column = fields
    error = kind(message, document or "", position)
    if document is None:
        error.lineno, error.colno = line, column
        error.args = (f"{message}: line {line} column {column} (char {position})",)
    return error
