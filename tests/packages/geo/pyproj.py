"""Converts degrees to metres of a map."""

from pyproj import Transformer

to_map = Transformer.from_crs("EPSG:4326", "EPSG:3857", always_xy=True)
assert round(to_map.transform(10, 0)[0]) == 1113195
