"""Measures the distance of two cities in two ways."""

from geopy.distance import geodesic, great_circle

oslo, rome = (59.91, 10.75), (41.90, 12.50)
assert 2000 < geodesic(oslo, rome).km < 2015
assert abs(great_circle(oslo, rome).km - geodesic(oslo, rome).km) < 10
