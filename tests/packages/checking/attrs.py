"""Validates, converts and compares."""

import attrs


@attrs.frozen
class Point:
    x: int = attrs.field(converter=int, validator=attrs.validators.ge(0))


assert Point("3") == Point(3) and attrs.asdict(attrs.evolve(Point(1), x=2)) == {"x": 2}
