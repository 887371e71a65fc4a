"""pprint, reprlib and repr: widths, depths, sorting, recursion, shortened output, repr of nested containers and numbers."""
import dataclasses
import pprint
import reprlib
import textwrap
from collections import ChainMap, Counter, OrderedDict, UserDict, defaultdict, deque, namedtuple
from types import MappingProxyType, SimpleNamespace

data = {
    "name": "isolet", "versions": [f"3.{n}" for n in range(8, 15)], "limits": {"wall": 30.0, "memory": None, "nested": {"deep": {"deeper": {"deepest": 1}}}},
    "flags": {True, False}, "tuple": (1, (2, (3,))), 5: "integer key", "bytes": b"\x00\xff" * 12,
    "text": "a sentence that is long enough to be wrapped over several lines by the pretty printer, as strings are",
}
pprint.pprint(data, width=70, sort_dicts=False)
pprint.pprint(data["limits"], depth=2)
pprint.pprint([list(range(n)) for n in range(12)], width=40, compact=True)
pprint.pprint({"z": 1, "a": {"y": 2, "b": 3}, "m": [3, 1]}, width=20)
print(pprint.pformat({"b": 1, "a": 2}), pprint.pformat({"b": 1, "a": 2}, sort_dicts=False), pprint.pformat(1234567, underscore_numbers=True), pprint.saferepr([1, {"k": (2,)}]))
print(pprint.isreadable([1, "a"]), pprint.isreadable(SimpleNamespace), pprint.isrecursive(data))
loop = [1]
loop.append(loop)
mapping = {"self": None}
mapping["self"] = mapping
print(loop, mapping, pprint.isrecursive(loop), "<Recursion on list" in pprint.pformat(loop))

pprint.pprint(OrderedDict((k, list(range(6))) for k in ("one", "two", "three")), width=30)
pprint.pprint(defaultdict(int, {"alpha": 1, "beta": 2, "gamma": 3}), width=30)
pprint.pprint(Counter("abracadabra simsalabim"), width=40)
pprint.pprint(deque(range(30)), width=50, compact=True)
pprint.pprint([ChainMap({"a": 1}, {"b": 2}), MappingProxyType({"k": [1, 2]}), UserDict(x=1)], width=60)
pprint.pprint(SimpleNamespace(name="namespace", values=list(range(10)), inner=SimpleNamespace(x=1, y=2)), width=40)


@dataclasses.dataclass
class Node:
    label: str
    weight: float = 1.0
    hidden: int = dataclasses.field(default=0, repr=False)
    children: list = dataclasses.field(default_factory=list)


pprint.pprint(Node("root", children=[Node("left", 2.5), Node("right", children=[Node("leaf")])]), width=60)
Point = namedtuple("Point", "x y")
pprint.pprint({Point(1, 2): [Point(3, 4)] * 3}, width=30)

short = reprlib.Repr()
short.maxlist, short.maxstring, short.maxdict, short.maxlevel, short.maxlong = 3, 15, 2, 2, 12
print(short.repr(list(range(50))), short.repr("a very long string indeed"), short.repr({n: n for n in range(9)}), short.repr([[[[1]]]]), short.repr(10**40), sep="\n")
print(reprlib.repr(set("abcdefgh")), reprlib.repr(tuple(range(10))), reprlib.repr(frozenset([1])), reprlib.repr(deque(range(20))), reprlib.repr("x" * 100))


class Shy(reprlib.Repr):
    def repr_str(self, value, level):
        return f"<{len(value)} chars>"

    def repr_Node(self, value, level):
        return f"Node[{value.label}]"


print(Shy().repr(["secret", {"k": "value"}, Node("n")]))


class Ring:
    def __init__(self):
        self.items = [1, self]

    @reprlib.recursive_repr(fillvalue="<ring>")
    def __repr__(self):
        return f"Ring({self.items})"


print(Ring(), [Ring()], str(Ring()))


class Table:
    """A class with its own pretty form."""

    def __init__(self, rows):
        self.rows = rows

    def __repr__(self):
        return f"Table({self.rows!r})"

    def __str__(self):
        widths = [max(len(str(cell)) for cell in column) for column in zip(*self.rows)]
        return "\n".join("  ".join(f"{cell!s:>{w}}" if isinstance(cell, (int, float)) else f"{cell!s:<{w}}" for cell, w in zip(row, widths)) for row in self.rows)

    def __format__(self, spec):
        return textwrap.indent(str(self), spec or "")


table = Table([("item", "n"), ("pen", 5), ("notebook", 12)])
print(table, f"{table:| }", [table], sep="\n")
print([repr(v) for v in (1.0, 1e20, -0.0, 10**20, 1 + 0j, True, None, ..., "it's", 'q"', b"'", range(5), slice(1), {}, set(), (), (1,), [[]], {"a": {1}})])
print(str("x"), [str("x")], "%s %r" % ("s", "s"), ascii("ü"), f"{'ü'!a}", "\t\\", repr("\t\\"), type(1).__name__, type("C", (), {"__module__": "m"}), int, len)


def tree(node, prefix=""):
    yield node.label
    for index, child in enumerate(node.children):
        last = index == len(node.children) - 1
        lines = tree(child)
        yield f"{'└── ' if last else '├── '}{next(lines)}"
        yield from (f"{'    ' if last else '│   '}{line}" for line in lines)


print("\n".join(tree(Node("src", children=[Node("engine", children=[Node("ops"), Node("realm")]), Node("host"), Node("lib", children=[Node("x", children=[Node("y")])])]))))
