"""Pictures.

Turns a photo upright by its EXIF data, resizes and converts it, and compares the colours.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from PIL import ExifTags, Image, ImageOps

original = Image.open("harbour.jpg")
exif = {ExifTags.TAGS[tag]: value for tag, value in original.getexif().items()}
print(f"{original.format} {original.size} {original.mode}")
print({name: exif[name] for name in ("Make", "Model", "DateTime", "Orientation")})

photo = ImageOps.exif_transpose(original)
print("upright:", photo.size)

thumbnail = photo.copy()
thumbnail.thumbnail((192, 192), Image.Resampling.LANCZOS)
square = ImageOps.fit(photo, (128, 128))
gray = ImageOps.autocontrast(ImageOps.grayscale(thumbnail))

thumbnail.save("thumbnail.png", optimize=True)
thumbnail.save("thumbnail.webp", quality=90)
thumbnail.save("thumbnail.jpg", quality=80, progressive=True)
square.quantize(64).save("square.gif")
gray.save("gray.tiff", compression="tiff_lzw")
files = []
for name in ("thumbnail.png", "thumbnail.webp", "thumbnail.jpg", "square.gif", "gray.tiff"):
    with Image.open(name) as image:
        size = Path(name).stat().st_size / 1024
        files.append([name, image.format, image.mode, *image.size, round(size)])
print(pd.DataFrame(files, columns=["file", "format", "mode", "width", "height", "KiB"]))
webp = np.asarray(Image.open("thumbnail.webp"), float)
print(f"mean error of WebP: {np.abs(webp - np.asarray(thumbnail)).mean():.0f} of 255")

pixels = np.asarray(thumbnail)
stats = pd.DataFrame(pixels.reshape(-1, 3), columns=["red", "green", "blue"]).agg(["mean", "std"])
print()
print(stats.round(1))

fig, (left, middle, right) = plt.subplots(1, 3, figsize=(6, 1.8))
left.imshow(thumbnail)
left.set_title("{} x {}".format(*thumbnail.size))
middle.imshow(gray, cmap="gray")
middle.set_title("grayscale")
for axes in (left, middle):
    axes.axis("off")
histogram = np.array(thumbnail.histogram()).reshape(3, 256)
for channel, color in zip(histogram.reshape(3, 64, 4).sum(axis=2), ("red", "green", "blue")):
    right.stairs(channel, np.arange(0, 257, 4), color=color)
right.set(title="histogram", xlim=(0, 255), yticks=[])
fig.tight_layout()
plt.show()
