"""Turns nested data into classes and back."""

from attrs import define
from cattrs import structure, unstructure


@define
class Line:
    points: list[tuple[int, int]]


line = structure({"points": [["1", 2]]}, Line)
assert line == Line([(1, 2)]) and unstructure(line) == {"points": [(1, 2)]}
