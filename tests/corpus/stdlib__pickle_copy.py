"""pickle and copy: every protocol, shared references and cycles, __reduce__, __getstate__, restricted loading, deep copies."""
import copy
import io
import pickle
import pickletools
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial

Pair = namedtuple("Pair", "left right")


class Colour(Enum):
    RED = 1


@dataclass
class Node:
    name: str
    links: list = field(default_factory=list)


class Account:
    """State that must not be copied as it is: a cache and a callable."""

    def __init__(self, owner, balance):
        self.owner, self.balance = owner, balance
        self.cache = {"expensive": True}
        self.on_change = lambda: None

    def __getstate__(self):
        return {"owner": self.owner, "balance": self.balance, "version": 2}

    def __setstate__(self, state):
        assert state.pop("version") == 2
        self.__dict__.update(state, cache={}, on_change=None)

    def __eq__(self, other):
        return (self.owner, self.balance) == (other.owner, other.balance)


class Interval:
    __slots__ = ("low", "high")

    def __init__(self, low, high):
        self.low, self.high = low, high

    def __reduce__(self):
        return Interval, (self.low, self.high)

    def __repr__(self):
        return f"Interval({self.low}, {self.high})"


class Money(int):
    def __new__(cls, amount, currency="EUR"):
        self = super().__new__(cls, amount)
        self.currency = currency
        return self

    def __getnewargs__(self):
        return int(self), self.currency


values = [
    None, True, -5, 10**30, 1.5, 2 - 3j, "text ü", b"bytes", bytearray(b"ba"), (1, (2,)), [1, [2]], {"k": {1: 2}}, {1, 2}, frozenset("a"), range(3), slice(1, 2),
    Pair(1, "r"), Colour.RED, Node("n", [1]), Interval(1, 2), Counter("aab"), OrderedDict(a=1), defaultdict(list, x=[1]), deque([1, 2], 5), date(2024, 2, 29),
    timedelta(1, 2), Decimal("1.10"), Fraction(1, 3), len, Node, Ellipsis, NotImplemented, str.upper,
]
for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
    restored = [pickle.loads(pickle.dumps(v, protocol)) for v in values]
    same = [a == b or repr(a) == repr(b) for a, b in zip(values, restored)]
    print("protocol", protocol, all(same), sum(same), [type(r).__name__ for r in restored[16:20]])

account = pickle.loads(pickle.dumps(Account("ann", 5)))
print(account == Account("ann", 5), account.cache, account.on_change, pickle.loads(pickle.dumps(Money(7, "USD"))).currency, pickle.loads(pickle.dumps(Interval(3, 4))))
shared = [1]
a, b = pickle.loads(pickle.dumps([shared, shared]))
loop = Node("loop")
loop.links.append(loop)
again = pickle.loads(pickle.dumps(loop))
print(a is b, again.links[0] is again, pickle.loads(pickle.dumps(partial(int, base=2)))("101"))
for bad in (lambda: pickle.dumps(lambda: 0), lambda: pickle.dumps(x for x in []), lambda: pickle.loads(b""), lambda: pickle.loads(b"garbage"), lambda: pickle.loads(pickle.dumps([1, 2])[:-3]), lambda: pickle.loads(b"cno_such_module\nx\n.")):
    try:
        bad()
        print("accepted", end=" ")
    except (pickle.PickleError, TypeError, EOFError, AttributeError, ImportError) as error:
        print("refused", end=" ")
print()


class Restricted(pickle.Unpickler):
    allowed = {("builtins", "range"), ("collections", "deque")}

    def find_class(self, module, name):
        if (module, name) in self.allowed:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is forbidden")


print(Restricted(io.BytesIO(pickle.dumps([range(2), deque([1])]))).load())
try:
    Restricted(io.BytesIO(b"cos\nsystem\n(S'echo hi'\ntR.")).load()
except pickle.UnpicklingError as error:
    print(error)


class Database:
    rows = {7: "seven"}


class Pickler(pickle.Pickler):
    def persistent_id(self, value):
        return ("row", 7) if value is Database.rows else None

    def reducer_override(self, value):
        return (complex, (0, 1)) if value == "i" else NotImplemented


class Unpickler(pickle.Unpickler):
    def persistent_load(self, reference):
        return Database.rows


stream = io.BytesIO()
Pickler(stream).dump([Database.rows, "x", 1])
Pickler(stream).dump("second")
stream.seek(0)
unpickler = Unpickler(stream)
print(unpickler.load()[0] is Database.rows, unpickler.load())
buffers = []
payload = pickle.dumps(pickle.PickleBuffer(b"out of band"), protocol=5, buffer_callback=buffers.append)
print(len(buffers), bytes(pickle.loads(payload, buffers=buffers)), len(pickletools.optimize(pickle.dumps(["a", "b"], 2))) <= len(pickle.dumps(["a", "b"], 2)))
print([op.name for op, _, _ in pickletools.genops(pickle.dumps((1, "a"), 2))])

original = {"list": [1, [2, 3]], "node": Node("x", [Node("y")]), "same": None}
original["same"] = original["list"]
shallow, deep = copy.copy(original), copy.deepcopy(original)
original["list"][1].append(4)
original["node"].links[0].name = "changed"
print(shallow["list"], deep["list"], deep["same"] is deep["list"], shallow["node"].links[0].name, deep["node"].links[0].name)
print(copy.copy(5) == 5, copy.deepcopy((1, 2)) == (1, 2), copy.copy(Interval(1, 2)), copy.deepcopy(loop).links[0].name, copy.copy(account).cache, (t := (1, "a")) is copy.deepcopy(t))


class Tree:
    made = 0

    def __init__(self, value, parent=None):
        self.value, self.parent, self.children = value, parent, []
        if parent:
            parent.children.append(self)

    def __copy__(self):
        return Tree(f"copy of {self.value}")

    def __deepcopy__(self, memo):
        Tree.made += 1
        new = memo[id(self)] = Tree(self.value)
        new.children = copy.deepcopy(self.children, memo)
        for child in new.children:
            child.parent = new
        return new


top = Tree("top")
for n in range(3):
    Tree(n, top)
clone = copy.deepcopy(top)
print(copy.copy(top).value, [c.value for c in clone.children], clone.children[0].parent is clone, Tree.made, top.children[0].parent is top)
