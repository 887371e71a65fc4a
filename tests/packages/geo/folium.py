"""Makes a map with a marker as a page of HTML."""

import folium

place = folium.Map((59.91, 10.75), zoom_start=9)
folium.Marker((59.91, 10.75), popup="Oslo").add_to(place)
page = place.get_root().render()
assert "Oslo" in page and "L.marker" in page
