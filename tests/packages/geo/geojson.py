"""Makes a collection of places and checks it."""

import geojson

place = geojson.Feature(geometry=geojson.Point((10.75, 59.91)), properties={"name": "Oslo"})
again = geojson.loads(geojson.dumps(geojson.FeatureCollection([place])))
assert again.is_valid and again.features[0].properties == {"name": "Oslo"}
