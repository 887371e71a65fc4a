"""Draws text, blurs, scales, and saves as PNG, JPEG and WebP."""

import io

from PIL import Image, ImageDraw, ImageFilter

picture = Image.new("RGB", (64, 64), "white")
ImageDraw.Draw(picture).text((8, 20), "hello", fill="black")
picture = picture.filter(ImageFilter.GaussianBlur(1)).resize((32, 32))
for kind in ("PNG", "JPEG", "WEBP"):
    file = io.BytesIO()
    picture.save(file, kind)
    assert Image.open(file).size == (32, 32)
