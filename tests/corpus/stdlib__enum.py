"""enum: members, aliases, auto, Flag and IntFlag arithmetic, custom values and methods, StrEnum, missing, the functional API."""
import enum
import json
from enum import Enum, Flag, IntEnum, IntFlag, StrEnum, auto, unique


class Planet(Enum):
    MERCURY = (3.303e23, 2.4397e6)
    EARTH = (5.976e24, 6.37814e6)
    TERRA = EARTH

    def __init__(self, mass, radius):
        self.mass, self.radius = mass, radius

    @property
    def gravity(self):
        return 6.67300e-11 * self.mass / self.radius**2

    @classmethod
    def heaviest(cls):
        return max(cls, key=lambda p: p.mass)


print(list(Planet.__members__), [p.name for p in Planet], Planet.TERRA is Planet.EARTH, Planet.heaviest().name, [f"{p.gravity:.4f}" for p in Planet])
print(Planet["EARTH"] == Planet((5.976e24, 6.37814e6)), Planet.EARTH in Planet, len(Planet), repr(Planet.EARTH)[:16], str(Planet.MERCURY), isinstance(Planet.EARTH, Planet))


class Status(Enum):
    OPEN = "open"
    CLOSED = "closed"

    @classmethod
    def _missing_(cls, value):
        return next((m for m in cls if isinstance(value, str) and m.value == value.strip().lower()), None)

    def toggled(self):
        return Status.CLOSED if self is Status.OPEN else Status.OPEN

    def __bool__(self):
        return self is Status.OPEN


print(Status(" OPEN "), Status.OPEN.toggled(), bool(Status.CLOSED), {Status.OPEN: 1}[Status("open")], repr(Status.OPEN), f"{Status.OPEN}")
for bad in (lambda: Status("other"), lambda: Status["open"], lambda: setattr(Status, "OPEN", 1), lambda: exec("class Sub(Status): pass"), lambda: Status.OPEN < Status.CLOSED, lambda: Status()):
    try:
        bad()
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        print(type(error).__name__, end=" ")
print()


class Weekday(IntEnum):
    MON = 1
    TUE = auto()
    WED = auto()


print(Weekday.TUE + 1, Weekday(3).name, sorted([Weekday.WED, Weekday.MON]), Weekday.MON < 2, f"{Weekday.WED:03d}", str(Weekday.WED), [0, "a", "b"][Weekday.MON], json.dumps({"d": Weekday.TUE}), max(Weekday).name)


class Level(StrEnum):
    LOW = auto()
    HIGH = auto()
    CUSTOM = "Very Custom"


print(Level.LOW, Level.HIGH.upper(), Level.CUSTOM == "Very Custom", f"[{Level.LOW:>5}]", "-".join(Level), json.dumps(list(Level)), Level("low") is Level.LOW)


class Access(Flag):
    READ = auto()
    WRITE = auto()
    RUN = auto()
    ALL = READ | WRITE | RUN
    NONE = 0


both = Access.READ | Access.WRITE
print(both, both.value, Access.READ in both, Access.RUN in both, (~both), both & Access.READ, both ^ Access.ALL, bool(Access.NONE), [m.name for m in Access], [m.name for m in both], len(Access.ALL))
print(both == Access(3), (Access.READ | Access.RUN).name, Access(7) is Access.ALL, ~Access.NONE is Access.ALL, both | Access.NONE == both)


class Mode(IntFlag):
    X = 1
    W = 2
    R = 4


print(Mode.R | Mode.W, int(Mode.R | Mode.W), Mode(7) & ~Mode.W == Mode.R | Mode.X, Mode.R + 1, 0o754 >> 6 & Mode.R == Mode.R, [f"{''.join(f.name if f in Mode(int(d)) else '-' for f in (Mode.R, Mode.W, Mode.X)).lower()}" for d in "754"])

try:
    @unique
    class Duplicate(Enum):
        A = 1
        B = 1
except ValueError as error:
    print("unique:", type(error).__name__)


class Auto(Enum):
    @staticmethod
    def _generate_next_value_(name, start, count, last_values):
        return f"{name.lower()}-{count}"

    FIRST = auto()
    SECOND = auto()


class Mixed(str, Enum):
    A = "a"
    B = "b"


class Operation(Enum):
    ADD = enum.member(lambda a, b: a + b)
    MUL = enum.member(lambda a, b: a * b)
    helper = enum.nonmember(42)

    def __call__(self, a, b):
        return self.value(a, b)


print([a.value for a in Auto], Mixed.A == "a", Mixed("b").upper(), Operation.ADD(2, 3), Operation.MUL(2, 3), Operation.helper, [o.name for o in Operation])
Colour = Enum("Colour", "RED GREEN BLUE", start=10)
Size = Enum("Size", {"S": "small", "L": "large"})
print([(c.name, c.value) for c in Colour], Size.S.value, Colour.RED.name, type(Colour.RED) is Colour, Colour.__name__)


class Light(Enum):
    RED, GREEN, YELLOW = range(3)

    @property
    def next(self):
        members = list(type(self))
        return members[(members.index(self) + 1) % len(members)]


state, seen = Light.RED, []
for _ in range(4):
    seen.append(state.name)
    state = state.next
print(seen, {Light.RED: "stop"}.get(Light(0)), Light.RED.__class__.__name__, hash(Light.RED) == hash(Light["RED"]))


class Base(Enum):
    """No members, so it can be extended."""

    def describe(self):
        return f"{type(self).__name__}.{self.name}={self.value}"


class Extended(Base):
    ONE = 1
    TWO = 2


class Coded(Enum):
    def __new__(cls, code, text):
        member = object.__new__(cls)
        member._value_ = code
        member.text = text
        return member

    OK = 200, "fine"
    GONE = 410, "gone"


print([e.describe() for e in Extended], Coded(410).text, Coded.OK.value, [c.value for c in Coded])
match Coded(200):
    case Coded.GONE:
        print("gone")
    case Coded.OK | Light.RED:
        print("matched OK")
