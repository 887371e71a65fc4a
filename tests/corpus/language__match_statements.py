"""Structural pattern matching: every kind of pattern, guards, capture rules and __match_args__."""
import enum
from dataclasses import dataclass


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass
class Point:
    x: int
    y: int


@dataclass
class Line:
    start: Point
    end: Point


class Celsius:
    __match_args__ = ("degrees",)

    def __init__(self, degrees):
        self.degrees = degrees


class Limits:
    low = 10


def classify(value):
    match value:
        case None:
            return "None"
        case True | False as flag:
            return f"bool {flag}"
        case 0 | -1 | 2.5 | 3 + 4j:
            return f"special literal {value}"
        case Limits.low:
            return "value pattern"
        case Colour.RED:
            return "red"
        case Colour():
            return f"another colour {value.name}"
        case int(n) if n > 1000:
            return f"big int {n}"
        case int() | float():
            return f"number {value}"
        case "yes" | "y" | "ok":
            return "agreement"
        case b"raw":
            return "raw bytes"
        case str(text) if text.isupper():
            return f"shout {text}"
        case str():
            return f"text of {len(value)}"
        case []:
            return "empty sequence"
        case [x]:
            return f"one: {classify(x)}"
        case ["go", ("north" | "south") as way]:
            return f"go {way}"
        case ["go", *rest]:
            return f"go somewhere {rest}"
        case [first, *_, last] if first == last:
            return f"framed by {first}"
        case [int(a), int(b)] | [int(a), _, int(b)]:
            return f"ends {a} {b}"
        case [*items]:
            return f"sequence of {len(items)}"
        case {"type": "circle", "r": r}:
            return f"circle {r}"
        case {"type": "rect", "size": [w, h], **extra}:
            return f"rect {w}x{h} {sorted(extra)}"
        case {"error": {"code": 400 | 404 as code, "detail": str(detail)}}:
            return f"error {code}: {detail}"
        case {**everything} if not everything:
            return "empty mapping"
        case {}:
            return "some mapping"
        case Point(0, 0):
            return "origin"
        case Point(x=0, y=y) | Point(x=y, y=0):
            return f"on an axis at {y}"
        case Point(x, y) if x == y:
            return f"diagonal {x}"
        case Line(Point(x1, y1), Point(x2, _) as end) if x1 == x2:
            return f"vertical from {y1} to {end.y}"
        case Line():
            return "line"
        case Celsius(d):
            return f"{d} degrees"
        case _:
            return f"other {type(value).__name__}"


samples = [
    None, True, 0, -1, 2.5, 3 + 4j, 10, Colour.RED, Colour.BLUE, 5000, 7, 1.25, "ok", b"raw", "LOUD", "quiet",
    [], [[]], ["go", "north"], ["go", "up", "fast"], ("a", 1, "a"), [1, 2], (1, "mid", 3), range(4),
    {"type": "circle", "r": 2, "z": 0}, {"type": "rect", "size": (3, 4), "fill": 1, "border": 2},
    {"error": {"code": 404, "detail": "gone"}}, {"error": {"code": 500, "detail": "?"}}, {},
    Point(0, 0), Point(0, 9), Point(8, 0), Point(5, 5), Point(1, 2),
    Line(Point(1, 2), Point(1, 8)), Line(Point(0, 0), Point(3, 3)), Celsius(21), {1, 2}, b"other", 1 + 1j,
]
for sample in samples:
    print(f"{sample!s:<60.60} -> {classify(sample)}" if not isinstance(sample, Celsius) else f"Celsius -> {classify(sample)}")


def simplify(tree):
    """Nested patterns do algebra in a few lines."""
    match tree:
        case ("+", 0, e) | ("+", e, 0) | ("*", 1, e) | ("*", e, 1):
            return simplify(e)
        case ("*", 0, _) | ("*", _, 0):
            return 0
        case (op, int(a), int(b)):
            return {"+": a + b, "*": a * b}[op]
        case (op, a, b):
            inner = (op, simplify(a), simplify(b))
            return simplify(inner) if inner != tree else inner
        case leaf:
            return leaf


print(simplify(("+", ("*", 1, "x"), ("*", 0, "y"))), simplify(("+", ("+", 2, 3), ("*", "z", ("+", 1, 1)))))


class Proxy(dict):
    asked = []

    def get(self, key, default=None):
        Proxy.asked.append(key)
        return super().get(key, default)


match Proxy(a=1, b=2):
    case {"missing": _}:
        print("never")
    case {"a": 1, "b": b}:
        print("mapping through get:", Proxy.asked, b)

match = {"match": "soft keyword"}
case = match["match"]
print(case)
try:
    exec("match 1:\n    case x: pass\n    case y: pass")
except SyntaxError as error:
    print("irrefutable first:", type(error).__name__)
match 3:
    case name:
        pass
print("captures outlive the statement:", name)
