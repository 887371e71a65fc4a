"""Values as the host gets them: trees of plain types, and reprs of bounded length."""

import collections.abc
import datetime
import decimal
import enum
import fractions
import pathlib
import reprlib
import uuid

import _isolet_arrays as arrays

JSON = (int, float, str, dict, list, tuple)  # and what is made of them
SCALARS = (type(None), bool, int, float, str, bytes)
CONTAINERS = (list, tuple, set, frozenset, dict)
DEEP = 1000  # levels
MANY = 10_000  # containers in one level
MAX_LINE = 500  # characters
MAX_DEPTH = 100  # levels; the host refuses deeper ones too
ISO = (datetime.date, datetime.time)  # a datetime is a date
AS_TEXT = (decimal.Decimal, fractions.Fraction, uuid.UUID, pathlib.PurePath)
SEQUENCES = (collections.abc.Sequence, collections.abc.Set, collections.abc.ValuesView)


converted = False  # whether the value has other types than `json.dumps` takes


# What classes say of themselves, whatever their metaclasses and they put in its place.
NAME, QUALIFIED, MODULE = (
    vars(type)[name].__get__ for name in ("__name__", "__qualname__", "__module__")
)
UNPRINTABLE = "<exception str() failed>"


def encodable(text):
    return str.encode(text, "utf-8", "backslashreplace").decode()


def exact(text):
    """A text without what a class of the guest's makes of it."""
    return "".join((text,))


class Unrepresentable(Exception):
    """A value that cannot cross to the host; the message says which part and why."""


def describe_value(value, max_repr, reply, may_raise=False):
    """Adds the value to the reply, or why it cannot cross; its repr unless `max_repr` is None. If
    it `may_raise`, what the repr raises is raised.

    `flag` says that it is not what it seems: a list that was a set, a dict that was a dataclass.
    """
    global converted
    converted = False
    if max_repr is not None:
        reply["repr"] = encodable(capped_repr(value, max_repr, may_raise))
    try:
        reply["value"] = plain(value)
        if converted:
            reply["flag"] = True
    except Unrepresentable as reason:
        reply["value_error"] = encodable(str(reason))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # guest code that runs when a value is looked at
        kind = type_name(type(value))
        reply["value_error"] = encodable(
            f"a value of type {kind} cannot cross to the host: it raised {type_name(type(error))}"
        )


def plain(value, depth=0):
    """`value` as a tree of exactly the types that cross: scalars, lists and dicts."""
    global converted
    kind = type(value)
    if kind in SCALARS:
        if kind is bytes:
            converted = True
        elif kind is str and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise Unrepresentable(
                    f"a str with the lone surrogate {value[error.start]!a} at index {error.start} "
                    "cannot cross to the host"
                ) from None
        return value
    if depth >= MAX_DEPTH:
        reason = f"a value nested deeper than {MAX_DEPTH} levels cannot cross to the host"
        raise Unrepresentable(reason)
    depth += 1
    if kind in (list, tuple, set, frozenset):
        if kind is set or kind is frozenset:
            converted = True
        return [item if type(item) in (int, float) else plain(item, depth) for item in value]
    if kind is dict:
        return {key_of(key, depth): plain(item, depth) for key, item in value.items()}
    if not isinstance(value, JSON):
        converted = True
    return plain(simpler(value, kind), depth)


def simpler(value, kind):
    """`value` as something nearer to plain: what it holds, without its behaviour."""
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, enum.Enum):
        return value.value
    for base in (bool, int, float, str, bytes, dict, list, tuple, set, frozenset):
        if isinstance(value, base):
            return base(value)
    if hasattr(kind, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in kind.__dataclass_fields__}
    if hasattr(kind, "__pydantic_fields__"):
        return value.model_dump()
    if arrays.is_known(kind):
        simple = arrays.simpler(value, kind)
        if simple is not arrays.UNKNOWN:
            return simple
    if isinstance(value, ISO):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, AS_TEXT):
        return str(value)
    if hasattr(kind, "tolist"):  # arrays, and scalars of numpy
        return value.tolist()
    if isinstance(value, collections.abc.Mapping):
        return dict(value)
    if isinstance(value, SEQUENCES):
        return list(value)
    raise Unrepresentable(f"a value of type {type_name(kind)} cannot cross to the host")


def key_of(key, depth):
    if type(key) in SCALARS:
        return plain(key, depth)
    if isinstance(key, (tuple, frozenset)):
        raise Unrepresentable(f"a dict key of type {type_name(type(key))} cannot cross to the host")
    return plain(key, depth)


def type_name(kind):
    try:
        module = MODULE(kind)
    except AttributeError:  # it was deleted
        module = None
    name = QUALIFIED(kind)
    if type(module) is not str or module in ("builtins", "__main__"):
        return name
    return f"{module}.{name}"


def capped_repr(value, limit, may_raise=False):
    """`repr(value)` of at most `limit` characters, without building a huge one first."""
    try:
        if type(value) in (str, bytes, bytearray) and len(value) > limit:
            value = value[:limit]
            text = repr(value) + "..."
        elif type(value) in CONTAINERS and (len(value) > limit or is_deep(value)):
            text = reprlib_repr(value, limit)
        else:
            text = exact(repr(value))
    except Exception as error:
        if may_raise:
            raise
        kind = type_name(type(value))
        return f"<{kind} object; repr raised {NAME(type(error))}{first_line(error)}>"
    return text if len(text) <= limit else text[:limit] + "..."


def first_line(error):
    """What an exception says, after a colon; nothing if it says nothing."""
    try:
        text = exact(str(error))[:MAX_LINE].strip().partition("\n")[0]
    except BaseException:
        text = UNPRINTABLE
    return f": {text}" if text else ""


def is_deep(value):
    """Whether containers are nested so deep that repr() would raise RecursionError, or show little
    else.
    """
    level = [value]
    seen = {id(value)}  # repr() too goes into nothing a second time
    for _ in range(DEEP):
        inner = [item for outer in level for item in items_of(outer) if type(item) in CONTAINERS]
        level = [item for item in inner if id(item) not in seen]
        if not level or len(level) > MANY:  # too many to be deep: repr() takes them one by one
            return False
        seen.update(map(id, level))
    return True


def items_of(container):
    return container.values() if type(container) is dict else container


def reprlib_repr(value, limit):
    short = reprlib.Repr()
    short.maxlist = short.maxtuple = short.maxset = short.maxfrozenset = short.maxdict = limit // 8
    short.maxstring = short.maxother = limit
    return short.repr(value)
