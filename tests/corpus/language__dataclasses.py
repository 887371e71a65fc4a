"""Dataclasses: defaults, factories, ordering, frozen, slots, kw_only, inheritance, InitVar, replace, asdict."""
import dataclasses
from dataclasses import KW_ONLY, InitVar, asdict, astuple, dataclass, field, fields, replace
from typing import ClassVar


@dataclass(order=True)
class Version:
    major: int
    minor: int = 0
    label: str = field(default="", compare=False)

    @classmethod
    def parse(cls, text):
        numbers, _, label = text.partition("-")
        return cls(*map(int, numbers.split(".")), label=label)


versions = [Version.parse(t) for t in ("3.1", "2.10-beta", "2.9", "10.0-rc")]
print(versions[0])
print([f"{v.major}.{v.minor}" for v in sorted(versions)], Version(2, 9, "x") == Version(2, 9, "y"))
try:
    Version(1) < 3
except TypeError as error:
    print("not comparable with int:", type(error).__name__)


@dataclass
class Order:
    tax_rate: ClassVar[float] = 0.25
    customer: str
    items: list[tuple[str, int]] = field(default_factory=list)
    discount: InitVar[int] = 0
    total: float = field(init=False, repr=False)
    _: KW_ONLY
    express: bool = False
    notes: dict = field(default_factory=dict, metadata={"label": "free text"})

    def __post_init__(self, discount):
        net = sum(price for _, price in self.items) - discount
        self.total = net * (1 + self.tax_rate)


order = Order("ann", [("pen", 4), ("ink", 8)], 2, express=True)
print(order, order.total, Order("bob").items is Order("cy").items)
print([f.name for f in fields(Order)], fields(Order)[-1].metadata["label"])
try:
    Order("dee", [], 0, True)
except TypeError as error:
    print("keyword only:", type(error).__name__)
print(replace(order, customer="eve", discount=0).total)


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: float = 0.0

    def __add__(self, other):
        return Point(self.x + other.x, self.y + other.y)


@dataclass(frozen=True)
class Segment:
    start: Point
    end: Point
    tags: tuple[str, ...] = ()

    @property
    def length2(self):
        return (self.start.x - self.end.x) ** 2 + (self.start.y - self.end.y) ** 2


segment = Segment(Point(0), Point(3, 4) + Point(0, 0), ("edge",))
print(segment, segment.length2, hasattr(segment.start, "__dict__"), Point.__slots__)
print(asdict(segment), astuple(segment))
print({Point(1, 2): "here"}[Point(1, 2)], len({Point(1), Point(1.0), Point(2)}))
for change in (lambda: setattr(segment, "tags", ()), lambda: delattr(segment.start, "x")):
    try:
        change()
    except dataclasses.FrozenInstanceError as error:
        print(type(error).__name__, isinstance(error, AttributeError), error)


@dataclass
class Animal:
    name: str
    legs: int = 4

    def speak(self):
        return f"{self.name} says {self.sound}"


@dataclass
class Dog(Animal):
    sound: str = "woof"
    legs: int = 3


@dataclass(repr=False, eq=False)
class Ghost(Animal):
    sound: str = "boo"

    def __repr__(self):
        return f"<{self.name}>"


print(Dog("rex"), Dog("rex").speak(), [f.name for f in fields(Dog)])
print(Ghost("casper"), Ghost("a") == Ghost("a"), Dog("a") == Dog("a"), Dog("a") == Animal("a", 3))

try:
    @dataclass
    class Bad:
        items: list = []
except ValueError as error:
    print("mutable default:", "default_factory" in str(error))
try:
    @dataclass
    class Worse:
        a: int = 1
        b: str
except TypeError as error:
    print("order of defaults:", type(error).__name__)


@dataclass
class Node:
    value: int
    children: list["Node"] = field(default_factory=list)

    def walk(self, depth=0):
        yield depth, self.value
        for child in self.children:
            yield from child.walk(depth + 1)


tree = Node(1, [Node(2, [Node(4)]), Node(3)])
print(tree)
print(list(tree.walk()), asdict(tree)["children"][1])
tree.children.append(tree)
print("recursive repr is cut:", repr(tree).endswith("...])"))

Made = dataclasses.make_dataclass("Made", ["a", ("b", int), ("c", list, field(default_factory=list))], frozen=True)
print(Made(1, 2), dataclasses.is_dataclass(Made), dataclasses.is_dataclass(Made(1, 2)), dataclasses.is_dataclass(3))


@dataclass(match_args=True, unsafe_hash=True)
class Card:
    rank: int
    suit: str = field(hash=False)


match Card(12, "hearts"):
    case Card(rank, suit="hearts") if rank > 10:
        print("court card", rank, Card.__match_args__, hash(Card(1, "a")) == hash(Card(1, "b")))
