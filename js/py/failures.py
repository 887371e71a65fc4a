"""Exceptions that stand for what functions of the host have raised.

The host sends the name of a class, a text, and the names of the classes of the standard library
that it is based on, such as `json.decoder.JSONDecodeError` and `ValueError`; of a group, the same
of each of its exceptions.
"""

import builtins
import functools
import re
import sys
import types
from _socket import gaierror
from importlib import import_module

MADE = 64  # classes that are kept, so that a second failure is of the same class
MOST_FAILED = 65_536  # bytes or characters that are made up for an error of their encoding
GROUP_TEXT = re.compile(r"(.*) \(\d+ sub-exceptions?\)", re.DOTALL)
OS_TEXT = re.compile(r"\[Errno (\d+)\] (.*?)(?:: '(.*)')?", re.DOTALL)
JSON_TEXT = re.compile(r"(.*): line (\d+) column (\d+) \(char (\d+)\)", re.DOTALL)
UNICODE_TEXT = re.compile(
    r"'([^']*)' codec can't (?:de|en)code"
    r" (?:byte 0x([0-9a-f]+)|character '\\[xuU]([0-9a-f]+)'|bytes|characters)"
    r" in position (\d+)(?:-(\d+))?: (.*)",
    re.DOTALL,
)


class ToolError(RuntimeError):
    """A tool has failed."""

    __module__ = "__main__"


class CallInterrupted(RuntimeError):
    """A call whose answer is lost: the session's process has ended, and another goes on with it."""

    __module__ = "builtins"


# Classes of the host's that builtins lacks.
OWN = {"ToolError": ToolError, "gaierror": gaierror, "CallInterrupted": CallInterrupted}


def begin_recorded():
    """Lets programs of a recorded session name what they can catch."""
    builtins.CallInterrupted = CallInterrupted


def exception(name, message, bases=(), exceptions=()):
    """The host's error: of its own class if that is here, or of one of its name that is made."""
    if exceptions:
        return group_of(name, message, [exception(*each) for each in exceptions])
    found = {base: kind for base in bases if (kind := library_class(base))}
    kinds = tuple(dict.fromkeys(found.values()))
    nearest = tuple(kind for kind in kinds if not has_subclass(kind, kinds))
    own = OWN.get(name) or library_class(name)
    own = own or next((found[base] for base in found if base.rpartition(".")[2] == name), None)
    if own and all(issubclass(own, kind) for kind in nearest):
        error = of_text(own, message)
        if error is not None:
            return error
        nearest = (own,)
    for group in nearest, *[(kind,) for kind in kinds], (RuntimeError,):
        for is_bare in False, True:
            try:
                error = group and of_text(made(name, group, is_bare), message)
            except TypeError:  # no class can be based on all of these
                continue
            if error:
                return error
    return RuntimeError(message)


def group_of(name, message, exceptions):
    """A group of exceptions, whose text tells how many there are."""
    kind = ExceptionGroup
    if name != kind.__name__:
        kind = made(name, (kind,), False)
    found = GROUP_TEXT.fullmatch(message)
    return kind(found[1] if found else message, exceptions)


def library_class(name):
    """An exception of the standard library: `OSError`, `json.decoder.JSONDecodeError`."""
    module, _, attribute = name.rpartition(".")
    if module and module.partition(".")[0] not in sys.stdlib_module_names:
        return None
    try:
        kind = getattr(import_module(module) if module else builtins, attribute, None)
    except Exception:  # there is no such module here
        return None
    return kind if isinstance(kind, type) and issubclass(kind, Exception) else None


def has_subclass(kind, kinds):
    return any(other is not kind and issubclass(other, kind) for other in kinds)


@functools.lru_cache(MADE)
def made(name, bases, is_bare):
    """A class of this name. A bare one takes a text, whatever those that it is based on take."""

    def fill(namespace):
        namespace["__module__"] = "__main__"
        if is_bare:
            namespace["__init__"] = BaseException.__init__
            namespace["__str__"] = BaseException.__str__

    return types.new_class(name, bases, {}, fill)


def of_text(kind, message):
    """An exception of a class with this text, or None if the class cannot have it."""
    for make in parsed, plain:
        try:
            error = make(kind, message)
            if error is not None and text(error) == message:
                return error
        except Exception:  # the class wants other arguments
            pass
    return None


def plain(kind, message):
    return kind(message)


def text(error):
    # The text of a `KeyError` is the `repr` of its argument.
    return error.args[0] if type(error).__str__ is KeyError.__str__ else str(error)


def parsed(kind, message):
    """An exception with the fields that its text tells of, if there are some."""
    if issubclass(kind, OSError):
        found = OS_TEXT.fullmatch(message)
        return found and os_error(kind, *found.groups())
    if issubclass(kind, UnicodeError):
        found = UNICODE_TEXT.fullmatch(message)
        return found and unicode_error(kind, *found.groups())
    json = sys.modules.get("json.decoder")
    if json and issubclass(kind, json.JSONDecodeError):
        return json_error(kind, message)
    return None


def os_error(kind, number, reason, path):
    return kind(int(number), reason, *([] if path is None else [path]))


def json_error(kind, message):
    error = kind(message, "", 0)
    error.args = (message,)
    found = JSON_TEXT.fullmatch(message)
    if found:
        error.msg = found[1]
        error.lineno, error.colno, error.pos = map(int, found.groups()[1:])
    return error


def unicode_error(kind, encoding, byte, character, start, last, reason):
    """Of what failed, the text has only the place, and what is there if that is a single byte or
    character.
    """
    start, last = int(start), int(last or start)
    if last > MOST_FAILED:
        return None
    failed = byte or character
    failed = "?" if failed is None else chr(min(int(failed, 16), sys.maxunicode))
    cause = "?" * start + failed + "?" * (last - start)
    if issubclass(kind, UnicodeDecodeError):
        cause = cause.encode("latin-1", "replace")
    return kind(encoding, cause, start, last + 1, reason)
