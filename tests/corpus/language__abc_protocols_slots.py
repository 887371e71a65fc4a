"""Abstract base classes, virtual subclasses, runtime protocols, __slots__ and the collections.abc mixins."""
import abc
import collections.abc
from typing import Protocol, runtime_checkable


class Shape(abc.ABC):
    @property
    @abc.abstractmethod
    def area(self): ...

    @abc.abstractmethod
    def scale(self, factor):
        return f"scaled by {factor}"

    @classmethod
    @abc.abstractmethod
    def unit(cls): ...

    def describe(self):
        return f"{type(self).__name__} of area {self.area}"


class Square(Shape):
    def __init__(self, side):
        self.side = side

    @property
    def area(self):
        return self.side**2

    def scale(self, factor):
        return super().scale(factor), type(self)(self.side * factor).area

    @classmethod
    def unit(cls):
        return cls(1)


class Half(Shape):
    def scale(self, factor):
        return None


for cls in (Shape, Half):
    try:
        cls()
    except TypeError as error:
        print(type(error).__name__, cls.__name__, sorted(cls.__abstractmethods__))
print(Square(3).describe(), Square(3).scale(2), Square.unit().area)


class Quacks(abc.ABC):
    @classmethod
    def __subclasshook__(cls, other):
        if cls is Quacks:
            return any("quack" in vars(base) for base in other.__mro__) or NotImplemented
        return NotImplemented


class Duck:
    def quack(self):
        return "quack"


@Quacks.register
class Recording:
    pass


print([issubclass(c, Quacks) for c in (Duck, Recording, int)], isinstance(Duck(), Quacks), Recording.__mro__[1].__name__)


@runtime_checkable
class Closable(Protocol):
    def close(self) -> None: ...


class Sized2(Protocol):
    size: int


class Door:
    def close(self):
        return "shut"


print(isinstance(Door(), Closable), isinstance(3, Closable), issubclass(Door, Closable))
try:
    isinstance(3, Sized2)
except TypeError as error:
    print("not runtime checkable:", type(error).__name__)


class LowerDict(collections.abc.MutableMapping):
    """Five methods give the whole dict interface."""

    def __init__(self, *args, **kwargs):
        self.data = {}
        self.update(*args, **kwargs)

    def __getitem__(self, key):
        return self.data[key.lower()]

    def __setitem__(self, key, value):
        self.data[key.lower()] = value

    def __delitem__(self, key):
        del self.data[key.lower()]

    def __iter__(self):
        return iter(self.data)

    def __len__(self):
        return len(self.data)


headers = LowerDict({"Content-Type": "json"}, Accept="*")
headers["ACCEPT"] = "text"
print(dict(headers), "accept" in headers, headers.get("nope", 0), headers.pop("content-TYPE"), headers.setdefault("X", 1))
print(list(headers.items()), headers == {"accept": "text", "x": 1}, isinstance(headers, collections.abc.Mapping))


class Progression(collections.abc.Sequence):
    def __init__(self, *items):
        self.items = items

    def __getitem__(self, index):
        return self.items[index]

    def __len__(self):
        return len(self.items)


p = Progression(3, 1, 4, 1)
print(list(reversed(p)), p.index(4), p.count(1), 4 in p, list(p), isinstance(p, collections.abc.Reversible))


class Bits(collections.abc.Set):
    def __init__(self, items=()):
        self.mask = sum(1 << i for i in set(items))

    def __contains__(self, item):
        return bool(self.mask >> item & 1)

    def __iter__(self):
        return (i for i in range(self.mask.bit_length()) if i in self)

    def __len__(self):
        return self.mask.bit_count()


a, b = Bits([1, 2, 3]), Bits([3, 4])
print(list(a | b), list(a & b), list(a - b), list(a ^ b), a > Bits([1]), a.isdisjoint(Bits([9])), a == {1, 2, 3})


class Slotted:
    __slots__ = ("x", "__weakref__")

    def __init__(self, x):
        self.x = x


class Extended(Slotted):
    __slots__ = ("y",)


class Loose(Slotted):
    pass


s, e = Slotted(1), Extended(2)
for target in (s, e, Loose(3)):
    try:
        target.extra = 1
        print(type(target).__name__, "takes attributes:", vars(target))
    except AttributeError:
        print(type(target).__name__, "refuses; has __dict__:", hasattr(target, "__dict__"))
print(hasattr(e, "y"), Extended.__slots__, type(Slotted.x).__name__)
interfaces = ("Hashable", "Iterable", "Sequence", "Mapping", "Set", "Callable", "Awaitable")
for value in ([], (), {}, "s", {1}, 3, len, iter([])):
    print(type(value).__name__, [i for i in interfaces if isinstance(value, getattr(collections.abc, i))])
