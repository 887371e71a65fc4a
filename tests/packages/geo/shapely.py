"""Intersects two shapes."""

from shapely.geometry import Point, box

assert box(0, 0, 2, 2).intersection(box(1, 1, 3, 3)).area == 1
assert box(0, 0, 2, 2).contains(Point(1, 1))
