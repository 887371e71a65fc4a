"""Inheritance: C3 linearisation, cooperative super(), class and static methods, __init_subclass__."""


class Base:
    registry = []

    def __init_subclass__(cls, /, tag=None, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.tag = tag or cls.__name__.lower()
        Base.registry.append(cls.tag)

    def __init__(self, **kwargs):
        assert not kwargs, f"left over: {sorted(kwargs)}"
        self.trail = ["Base"]

    def describe(self):
        return ["Base.describe"]


class Left(Base, tag="l"):
    def __init__(self, *, left=0, **kwargs):
        super().__init__(**kwargs)
        self.left = left
        self.trail.append("Left")

    def describe(self):
        return ["Left.describe", *super().describe()]


class Right(Base):
    def __init__(self, *, right=0, **kwargs):
        super().__init__(**kwargs)
        self.right = right
        self.trail.append("Right")

    def describe(self):
        return ["Right.describe", *super().describe()]


class Both(Left, Right, tag="both"):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.trail.append("Both")

    def describe(self):
        return ["Both.describe", *super().describe()]


def names(classes):
    return [c.__name__ for c in classes]


both = Both(left=3, right=4)
print("mro:", names(Both.__mro__))
print("construction order:", both.trail)
print("cooperative super:", both.describe())
print("attributes:", both.left, both.right, sorted(vars(both)))
print("registry:", Base.registry)
print("direct subclasses:", names(Base.__subclasses__()))
print("skipping one step:", super(Left, both).describe())

try:
    class Impossible(Base, Left):
        pass
except TypeError as error:
    print("no consistent mro:", type(error).__name__)

try:
    Both(left=1, wrong=2)
except AssertionError as error:
    print("unexpected keyword:", error)


class Temperature:
    """Alternative constructors, static helpers and class-level state."""

    made = 0

    def __init__(self, celsius):
        self.celsius = celsius
        type(self).made += 1

    @classmethod
    def from_fahrenheit(cls, value):
        return cls(cls._round((value - 32) * 5 / 9))

    @staticmethod
    def _round(value):
        return round(value, 2)

    def __repr__(self):
        return f"{type(self).__name__}({self.celsius!r})"


class Oven(Temperature):
    made = 0


print([Temperature(20), Temperature.from_fahrenheit(212), Oven.from_fahrenheit(451)])
print("counters:", Temperature.made, Oven.made)
print("bound to the subclass:", Oven.from_fahrenheit.__self__.__name__)
print("isinstance:", isinstance(Oven(1), Temperature), issubclass(Temperature, Oven))


class Stack(list):
    """A subclass of a builtin keeps the builtin's behaviour."""

    def push(self, *items):
        self.extend(items)
        return self

    def __getitem__(self, index):
        result = super().__getitem__(index)
        return Stack(result) if isinstance(index, slice) else result


stack = Stack().push(1, 2, 3, 4)
print(stack, type(stack[1:3]).__name__, stack[1:3].push("x"), stack + [5], type(stack + [5]).__name__)


class Private:
    def __init__(self):
        self.__secret = 42

    def peek(self):
        return self.__secret


class Child(Private):
    def __init__(self):
        super().__init__()
        self.__secret = "child"


child = Child()
print("mangled:", sorted(vars(child)), child.peek(), hasattr(child, "__secret"))

Dynamic = type("Dynamic", (Stack,), {"limit": 2, "full": lambda self: len(self) >= self.limit})
dynamic = Dynamic().push("a")
print(Dynamic.__name__, dynamic.full(), dynamic.push("b").full(), names(Dynamic.__mro__))

both.__class__ = Right
print("after changing __class__:", type(both).__name__, both.describe())
