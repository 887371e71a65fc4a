"""Writes shapes as SVG."""

import svgwrite

drawing = svgwrite.Drawing(size=(20, 10))
drawing.add(drawing.circle((5, 5), 4, fill="red"))
assert '<circle cx="5" cy="5" fill="red" r="4" />' in drawing.tostring()
