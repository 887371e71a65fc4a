"""Makes a nested dataclass of a dictionary."""

from dataclasses import dataclass

from dacite import WrongTypeError, from_dict


@dataclass
class Point:
    x: int


@dataclass
class Line:
    ends: list[Point]


assert from_dict(Line, {"ends": [{"x": 1}]}) == Line([Point(1)])
try:
    from_dict(Point, {"x": "a"})
    raise SystemExit("it accepts anything")
except WrongTypeError:
    pass
