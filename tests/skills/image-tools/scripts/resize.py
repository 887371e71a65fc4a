"""Resizes, crops and converts pictures."""

import argparse
import os
import sys
from pathlib import Path

from PIL import Image, ImageOps, UnidentifiedImageError

ENDINGS = {"png": ".png", "jpeg": ".jpg", "webp": ".webp", "gif": ".gif"}


def size(text):
    try:
        width, height = map(int, text.lower().split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"not a size such as 800x600: {text!r}") from None
    if width < 1 or height < 1:
        raise argparse.ArgumentTypeError("a size is at least 1x1")
    return width, height


def box(text):
    try:
        left, top, width, height = map(int, text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"not LEFT,TOP,WIDTH,HEIGHT: {text!r}") from None
    return left, top, left + width, top + height


def load(path):
    try:
        with Image.open(path) as image:
            return ImageOps.exif_transpose(image), (image.format or "PNG").lower()
    except UnidentifiedImageError:
        sys.exit(f"error: not a picture: {path}")
    except OSError as error:
        sys.exit(f"error: cannot read {path}: {error.strerror or error}")


def change(image, args):
    if args.crop:
        left, top, right, bottom = args.crop
        if not (0 <= left < right <= image.width and 0 <= top < bottom <= image.height):
            sys.exit(f"error: the box is not inside {image.width}x{image.height}")
        image = image.crop(args.crop)
    if image.mode == "P":
        image = image.convert("RGBA")
    if args.fill:
        return ImageOps.fit(image, args.fill, Image.Resampling.LANCZOS)
    if args.fit:
        image.thumbnail(args.fit, Image.Resampling.LANCZOS)
    return image


def on_white(image):
    """Returns the picture without transparency."""
    if "A" not in image.getbands():
        return image.convert("RGB")
    image = image.convert("RGBA")
    ground = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(ground, image).convert("RGB")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output_dir")
    parser.add_argument("pictures", nargs="+")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--fit", type=size, metavar="WxH")
    shape.add_argument("--fill", type=size, metavar="WxH")
    parser.add_argument("--crop", type=box, metavar="LEFT,TOP,WIDTH,HEIGHT")
    parser.add_argument("--format", choices=sorted(ENDINGS))
    parser.add_argument("--quality", type=int, default=85)
    args = parser.parse_args()

    out = Path(args.output_dir)
    out.mkdir(parents=True, exist_ok=True)
    for name in args.pictures:
        image, before = load(name)
        form = args.format or (before if before in ENDINGS else "png")
        path = out / (Path(name).stem + ENDINGS[form])
        if path.exists() and os.path.samefile(path, name):
            sys.exit(f"error: would overwrite {name}")
        old = image.size
        image = change(image, args)
        if form == "jpeg":
            image = on_white(image)
        options = {"quality": args.quality} if form in ("jpeg", "webp") else {}
        image.save(path, form.upper(), **options)
        print("{}: {}x{} to {}x{} {}".format(path.name, *old, *image.size, form))


if __name__ == "__main__":
    main()
