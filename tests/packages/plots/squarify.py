"""Divides a rectangle by sizes and draws it."""
# With: matplotlib

import squarify

boxes = squarify.squarify([6, 3, 1], 0, 0, 5, 2)
assert [round(box["dx"] * box["dy"]) for box in boxes] == [6, 3, 1]
assert len(squarify.plot([6, 3, 1], label=["a", "b", "c"]).patches) == 3
