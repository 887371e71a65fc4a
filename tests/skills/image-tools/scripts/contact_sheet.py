"""Puts pictures with their names on one sheet."""

import argparse
import math
import sys
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont, ImageOps, UnidentifiedImageError

GAP = 12
LABEL = 20


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output")
    parser.add_argument("pictures", nargs="+")
    parser.add_argument("--columns", type=int, default=4)
    parser.add_argument("--cell", type=int, default=200, help="width and height in pixels")
    args = parser.parse_args()
    if args.columns < 1 or args.cell < 16:
        sys.exit("error: at least 1 column, of at least 16 pixels")

    columns = min(args.columns, len(args.pictures))
    rows = math.ceil(len(args.pictures) / columns)
    width = columns * (args.cell + GAP) + GAP
    height = rows * (args.cell + LABEL + GAP) + GAP
    sheet = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(12)
    for index, name in enumerate(args.pictures):
        row, column = divmod(index, columns)
        left = GAP + column * (args.cell + GAP)
        top = GAP + row * (args.cell + LABEL + GAP)
        try:
            with Image.open(name) as image:
                image = ImageOps.exif_transpose(image).convert("RGBA")
        except (UnidentifiedImageError, OSError):
            sys.exit(f"error: cannot read {name}")
        image.thumbnail((args.cell, args.cell), Image.Resampling.LANCZOS)
        place = (left + (args.cell - image.width) // 2, top + (args.cell - image.height) // 2)
        sheet.paste(image, place, image)
        middle = left + args.cell / 2
        label = Path(name).name
        while len(label) > 4 and draw.textlength(label, font) > args.cell:
            label = label[:-2] + "…"
        draw.text((middle, top + args.cell + 2), label, "black", font, anchor="ma")
    sheet.save(args.output)
    print(f"{args.output}: {len(args.pictures)} pictures, {columns} columns, {rows} rows")


if __name__ == "__main__":
    main()
