"""Makes a chart as SVG."""

import pygal

chart = pygal.Bar(title="Rain")
chart.add("Oslo", [49, 36])
svg = chart.render().decode()
assert "<svg" in svg and "Rain" in svg and "Oslo" in svg
