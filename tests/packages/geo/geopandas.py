"""Joins points to the areas that contain them."""

import geopandas
from shapely import Point, box

areas = geopandas.GeoDataFrame({"name": ["a"]}, geometry=[box(0, 0, 1, 1)])
points = geopandas.GeoDataFrame(geometry=[Point(0.5, 0.5), Point(2, 2)])
assert points.sjoin(areas).name.tolist() == ["a"]
