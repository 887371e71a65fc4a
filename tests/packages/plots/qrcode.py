"""Draws a code of squares as SVG and as PNG."""
# With: pillow

import io

import qrcode
from qrcode.image.svg import SvgPathImage

file = io.BytesIO()
qrcode.make("hello").save(file)
assert file.getvalue().startswith(b"\x89PNG")
assert b"<svg" in qrcode.make("hello", image_factory=SvgPathImage).to_string()
