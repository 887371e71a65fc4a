"""Pictures in the usual formats, drawn on and filtered."""

import io

from PIL import Image, ImageDraw, ImageFilter, ImageFont

picture = Image.new("RGB", (64, 48), "navy")
draw = ImageDraw.Draw(picture)
draw.ellipse((8, 8, 40, 40), fill="gold")
draw.text((2, 2), "isolet", font=ImageFont.load_default(12))
for kind in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP"):
    file = io.BytesIO()
    picture.save(file, kind)
    again = Image.open(io.BytesIO(file.getvalue()))
    assert (again.format, again.size) == (kind, (64, 48)), kind
blurred = picture.filter(ImageFilter.GaussianBlur(2)).resize((32, 24)).rotate(90, expand=True)
assert blurred.size == (24, 32)

list(picture.getpixel((24, 24)))
