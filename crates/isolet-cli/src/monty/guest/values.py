"""Python objects as nodes of Monty's arenas, and back.

A node is a scalar, or a list of a tag and what belongs to it; containers name their children by
their index, which is lower than their own. The host checks every node that leaves.
"""

import builtins
import collections.abc
import dataclasses
import datetime
import decimal
import importlib
import pathlib
import types
import uuid
import weakref

from _monty_exceptions import (
    EXCEPTIONS,
    MOST_SHOWN,
    describe_exception,
    exception_name,
    exception_of,
    text,
)

SCALARS = (type(None), bool, int, float, bytes)
# The types that the client has names for.
TYPES = {
    kind: kind.__name__
    for kind in (
        *(bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, range, slice),
        *(object, type, type(None)),
    )
}
NAMED_TYPES = {name: kind for kind, name in TYPES.items()}
BUILTIN, SANDBOX, HOST = 1, 2, 3

ask_attribute = None  # how an attribute of a host's object is asked for
call_host = None  # how a function of the host's is called
classes = {}  # the host's classes, by their identity
live = weakref.WeakValueDictionary()  # the guest's objects that the client has heard of
functions = weakref.WeakValueDictionary()  # the host's functions, by name and object
identities = {}  # of the guest's objects: by `id`, with what keeps or watches the object


class HostClass(type):
    """A class of the client's: the client makes its instances, and has what is missing here."""

    def __call__(cls, /, *args, **kwargs):
        number = vars(cls).get("_monty_class")
        if number is None:  # a class of the guest's that is based on it
            return super().__call__(*args, **kwargs)
        return call_host("__call__", args, kwargs, number)

    def __getattr__(cls, name):
        number = vars(cls).get("_monty_class")
        if number is None or name.startswith("_monty_") or is_special(name):
            raise AttributeError(f"{shown_kind(cls)} has no attribute {name!r}")
        return ask_attribute(cls, number, name)


class HostObject(metaclass=HostClass):
    """An instance of a class of the client's: what it does not have here, the client is asked
    for.
    """

    __slots__ = ("__dict__", "__weakref__", "_monty_id")

    def __getattr__(self, name):
        if name.startswith("_monty_") or is_special(name):
            raise AttributeError(f"{shown_kind(self)} has no attribute {name!r}")
        return ask_attribute(self, self._monty_id, name)

    def __call__(self, /, *args, **kwargs):
        return call_host("__call__", args, kwargs, self._monty_id)

    def __repr__(self):
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({fields})"

    def __eq__(self, other):
        if type(self) is not type(other):
            return NotImplemented
        return self._monty_id == other._monty_id or (
            type(self)._monty_is_dataclass and vars(self) == vars(other)
        )

    __hash__ = None


def is_special(name):
    return name.startswith("__") and name.endswith("__")


def shown_kind(value):
    """What an error calls an object, as CPython does."""
    if isinstance(value, type):
        return f"type object {value.__name__!r}"
    return f"{type(value).__name__!r} object"


def host_function(name, doc=None, object_id=None):
    """The function of the client's, which is the same object as long as the guest has it."""
    function = functions.get((name, object_id))
    if function is None:
        function = functions[name, object_id] = HostFunction(name, doc, object_id)
    function.__doc__ = doc or function.__doc__
    return function


class HostFunction:
    """A function of the client's."""

    def __init__(self, name, doc=None, object_id=None):
        self.__name__ = self.__qualname__ = name
        self.__doc__ = doc
        self._monty_object = object_id

    def __call__(self, /, *args, **kwargs):
        return call_host(self.__name__, args, kwargs, self._monty_object)

    def __repr__(self):
        return f"<function {self.__name__!r} of the host>"


class Arena:
    """The nodes of a message."""

    def __init__(self):
        self.nodes = []
        self.known = {}  # by `id`: the index, or None of a container that is still open
        self.kept = []  # so that no other object gets the same `id`

    def add(self, value):
        """Adds an object and what it consists of. Returns its index."""
        # What is nested is added from the inside, however deep it is.
        opened = []
        if self.is_new(value):
            opened.append((value, iter(parts(value))))
            self.known[id(value)] = None
        while opened:
            outer, left = opened[-1]
            inner = next((part for part in left if self.is_new(part)), None)
            if inner is None:
                opened.pop()
                del self.known[id(outer)]
                self.add_one(outer)
            else:
                opened.append((inner, iter(parts(inner))))
                self.known[id(inner)] = None
        return self.add_one(value)

    def is_new(self, value):
        """Whether an object has parts, and is not added or being added yet."""
        return type(value) in CONTAINERS and id(value) not in self.known

    def add_one(self, value):
        kind = type(value)
        if kind is str:
            return self.node(text(value))
        if kind in SCALARS:
            return self.node(value)
        key = id(value)
        if key in self.known:
            index = self.known[key]
            return self.node(["cycle", cycle_text(value)]) if index is None else index
        self.known[key] = None
        self.kept.append(value)
        index = self.known[key] = self.node(self.describe(value, kind))
        return index

    def node(self, node):
        self.nodes.append(node)
        return len(self.nodes) - 1

    def pairs(self, items):
        indexes = []
        for name, value in items:
            indexes += self.add(name), self.add(value)
        return indexes

    def describe(self, value, kind):
        for described, describe in DESCRIPTIONS:
            if isinstance(value, described):
                node = describe(self, value)
                if node is not None:
                    return node
                break
        else:
            if kind.__module__ == "__main__" or dataclasses.is_dataclass(value):
                return self.instance(value, kind)
            if kind.__module__ != "builtins":
                plain = self.plain(value)
                if plain is not None:
                    return self.nodes[self.add(plain[0])]
        return ["repr", capped_repr(value)]

    def plain(self, value):
        """What a package's object consists of, in a tuple: an array is a list, say."""
        try:
            if callable(getattr(value, "tolist", None)):
                return (value.tolist(),)
            if isinstance(value, collections.abc.Mapping):
                return (dict(value),)
            if isinstance(value, (collections.abc.Sequence, collections.abc.Set)):
                return (list(value),)
        except Exception:  # code of the guest's that runs when a value is looked at
            pass
        return None

    def instance(self, value, kind):
        class_type = self.add(kind)
        attributes = dict(getattr(value, "__dict__", ()))
        for name in getattr(kind, "__slots__", ()):
            if isinstance(name, str) and name != "__dict__" and hasattr(value, name):
                attributes[name] = getattr(value, name)
        pairs = self.pairs(attributes.items())
        return ["instance", class_type, identity(value), *pairs]

    def host_object(self, value):
        class_type = self.add(type(value))
        return ["instance", class_type, value._monty_id, *self.pairs(vars(value).items())]

    def items(self, tag, value):
        return [tag, *[self.add(item) for item in value]]

    def tuple(self, value):
        kind = type(value)
        name, fields = kind.__name__, getattr(kind, "_fields", None)
        if fields is None and hasattr(kind, "n_sequence_fields"):
            # One of the interpreter's own, as `sys.version_info`.
            name, fields = f"{kind.__module__}.{kind.__name__}", kind.__match_args__
        if fields is None or len(fields) != len(value):
            return self.items("tuple", value)
        return ["named", name, list(fields), *[self.add(item) for item in value]]

    def type(self, value):
        if value in TYPES:
            return ["type", TYPES[value], None, BUILTIN, False]
        if issubclass(value, BaseException) and exception_name(value) in EXCEPTIONS:
            return ["type", exception_name(value), None, BUILTIN, False]
        if issubclass(value, HostObject) and hasattr(value, "_monty_class"):
            name, is_dataclass = value.__name__, value._monty_is_dataclass
            return ["type", name, value._monty_class, HOST, is_dataclass]
        if value.__module__ == "__main__":
            is_dataclass = dataclasses.is_dataclass(value)
            return ["type", value.__name__, identity(value), SANDBOX, is_dataclass]
        return None

    def function(self, value):
        return ["function", value.__name__, value.__doc__] if value._monty_object is None else None

    def module(self, value):
        number = getattr(value, "_monty_id", None)
        if number is None:
            return None
        public = [item for item in vars(value).items() if not item[0].startswith("_")]
        return ["module", value.__name__, number, *self.pairs(public)]

    def exception(self, value):
        name, message = describe_exception(value)
        return ["exception", name, message]

    def date(self, value):
        return ["date", value.year, value.month, value.day]

    def datetime(self, value):
        fields = [value.year, value.month, value.day, value.hour, value.minute, value.second]
        return ["datetime", *fields, value.microsecond, *offset(value)]

    def time(self, value):
        fields = [value.hour, value.minute, value.second, value.microsecond]
        return ["time", *fields, *offset(value), value.fold]

    def delta(self, value):
        return ["timedelta", value.days, value.seconds, value.microseconds]

    def zone(self, value):
        return ["timezone", *fixed_offset(value.utcoffset(None), value.tzname(None))]


CONTAINERS = frozenset([list, tuple, dict, set, frozenset])


def parts(value):
    return [*value, *value.values()] if type(value) is dict else value


# What describes an object of a type: the first that fits.
DESCRIPTIONS = (
    (bool, lambda arena, value: bool(value)),
    (int, lambda arena, value: int(value)),
    (float, lambda arena, value: float(value)),
    (str, lambda arena, value: text(str(value))),
    ((bytes, bytearray, memoryview), lambda arena, value: bytes(value)),
    (complex, lambda arena, value: ["complex", value.real, value.imag]),
    (list, lambda arena, value: arena.items("list", value)),
    (tuple, Arena.tuple),
    (dict, lambda arena, value: ["dict", *arena.pairs(value.items())]),
    (frozenset, lambda arena, value: arena.items("frozenset", value)),
    (set, lambda arena, value: arena.items("set", value)),
    (datetime.datetime, Arena.datetime),
    (datetime.date, Arena.date),
    (datetime.time, Arena.time),
    (datetime.timedelta, Arena.delta),
    (datetime.timezone, Arena.zone),
    (decimal.Decimal, lambda arena, value: ["decimal", str(value)]),
    (pathlib.PurePath, lambda arena, value: ["path", str(value)]),
    (BaseException, Arena.exception),
    (HostFunction, Arena.function),
    (HostObject, Arena.host_object),
    (types.ModuleType, Arena.module),
    (type, Arena.type),
    (type(Ellipsis), lambda arena, value: ["ellipsis"]),
    (type(NotImplemented), lambda arena, value: ["not_implemented"]),
)


def capped_repr(value):
    try:
        shown = repr(value)
    except Exception as error:
        shown = f"<{type(value).__name__}, of which repr() raised {type(error).__name__}>"
    return text(shown if len(shown) <= MOST_SHOWN else f"{shown[:MOST_SHOWN]}...")


def cycle_text(value):
    shapes = {list: "[...]", tuple: "(...)", dict: "{...}"}
    return next((shape for kind, shape in shapes.items() if isinstance(value, kind)), "...")


def offset(value):
    """The fixed offset of a time, and the name of its zone."""
    return fixed_offset(value.utcoffset(), value.tzname())


def fixed_offset(distance, name):
    """An offset in seconds, and the name if it is not the one that Python makes of the offset."""
    if distance is None:
        return None, None
    made = datetime.timezone(distance).tzname(None)
    return int(distance.total_seconds()), None if name == made else name


def identity(value):
    """What the client knows an object of the guest's by."""
    known = identities.get(id(value))
    if known is not None and known[1]() is value:
        return known[0]
    number, key = uuid.uuid4().bytes, id(value)
    try:
        held = weakref.ref(value, lambda _: identities.pop(key, None))
        live[number] = value
    except TypeError:  # it has slots, and stays
        held = lambda: value  # noqa: E731
    identities[key] = number, held
    return number


def restore(nodes):
    """The objects of all nodes."""
    objects = []
    for node in nodes:
        objects.append(RESTORED[node[0]](objects, *node[1:]) if type(node) is list else node)
    return objects


def attributes(objects, indexes):
    return {objects[key]: objects[value] for key, value in zip(indexes[::2], indexes[1::2])}


def restore_named(objects, name, fields, *indexes):
    kind = collections.namedtuple(name.rpartition(".")[2], fields, rename=True)
    return kind(*[objects[index] for index in indexes])


def restore_zone(seconds, name):
    distance = datetime.timedelta(seconds=seconds)
    if not seconds and name in (None, "UTC"):
        return datetime.timezone.utc
    return datetime.timezone(distance) if name is None else datetime.timezone(distance, name)


def restore_datetime(objects, *fields):
    *numbers, seconds, name = fields
    zone = None if seconds is None else restore_zone(seconds, name)
    return datetime.datetime(*numbers, zone)


def restore_time(objects, *fields):
    *numbers, seconds, name, fold = fields
    zone = None if seconds is None else restore_zone(seconds, name)
    return datetime.time(*numbers, zone, fold=fold)


def restore_type(objects, name, number, origin, is_dataclass, *indexes):
    if origin == BUILTIN:
        if name in NAMED_TYPES:
            return NAMED_TYPES[name]
        module, _, attribute = name.rpartition(".")
        kind = getattr(importlib.import_module(module) if module else builtins, attribute, None)
        if not isinstance(kind, type):
            raise TypeError(f"the type {name!r} of the host is not known here")
        return kind
    if origin == SANDBOX:
        return living(number, f"the class {name!r}")
    kind = classes.get(number)
    if kind is None:
        marks = {"_monty_class": number, "_monty_is_dataclass": is_dataclass}
        kind = types.new_class(name, (HostObject,), {}, lambda body: body.update(marks))
        kind.__module__ = "__main__"
        classes[number] = kind
    for key, value in attributes(objects, indexes).items():
        setattr(kind, key, value)
    return kind


def restore_instance(objects, class_type, number, *indexes):
    kind = objects[class_type]
    if not hasattr(kind, "_monty_class"):
        return living(number, f"the instance of {kind.__name__!r}")
    made = object.__new__(kind)
    made._monty_id = number
    vars(made).update(attributes(objects, indexes))
    return made


def living(number, what):
    value = live.get(number)
    if value is None:
        held = (held() for known, held in identities.values() if known == number)
        value = next(held, None)
    if value is None:
        raise RuntimeError(f"{what} that the host passes back is gone")
    return value


def restore_module(objects, name, number, *indexes):
    module = types.ModuleType(name)
    vars(module).update(attributes(objects, indexes))
    module._monty_id = number
    module.__path__ = []  # its modules are its attributes
    return module


def refuse(what):
    def refused(objects, *rest):
        raise TypeError(f"{what} of the host cannot come into the sandbox")

    return refused


RESTORED = {
    "ellipsis": lambda objects: ...,
    "not_implemented": lambda objects: NotImplemented,
    "complex": lambda objects, real, imag: complex(real, imag),
    "list": lambda objects, *items: [objects[item] for item in items],
    "tuple": lambda objects, *items: tuple([objects[item] for item in items]),
    "dict": lambda objects, *items: attributes(objects, items),
    "set": lambda objects, *items: {objects[item] for item in items},
    "frozenset": lambda objects, *items: frozenset([objects[item] for item in items]),
    "named": restore_named,
    "date": lambda objects, *fields: datetime.date(*fields),
    "datetime": restore_datetime,
    "time": restore_time,
    "timedelta": lambda objects, *fields: datetime.timedelta(*fields),
    "timezone": lambda objects, seconds, name: restore_zone(seconds, name),
    "decimal": lambda objects, value: decimal.Decimal(value),
    "path": lambda objects, value: pathlib.Path(value),
    "exception": lambda objects, name, message: exception_of(name, message),
    "type": restore_type,
    "instance": restore_instance,
    "function": lambda objects, name, doc: host_function(name, doc),
    "builtin": lambda objects, name: getattr(builtins, name),
    "module": restore_module,
    "file": lambda objects, path, mode: (path, mode),
    "repr": refuse("a mere repr"),
    "cycle": refuse("a cycle"),
}
