"""Finds the hexagon of a place."""

import h3

cell = h3.latlng_to_cell(59.91, 10.75, 7)
assert h3.get_resolution(cell) == 7 and len(h3.grid_disk(cell, 1)) == 7
