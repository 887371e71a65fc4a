"""Colors as pages write them, as matplotlib has them."""

import colorsys
import re

FUNCTION = re.compile(r"(rgb|hsl|hsv)a?\(([^)]*)\)$")
HEX = re.compile(r"#([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})$")
NAME = re.compile(r"[a-z]+$")


def color_of(text, opacity=1.0, default=None):
    """A color as `#rrggbbaa` or its name; the default if it is none."""
    if not isinstance(text, str):
        return default
    text = text.strip().lower().replace(" ", "")
    if text == "transparent":
        return "none"
    found = FUNCTION.match(text)
    if found:
        return of_function(found[1], found[2].split(","), opacity) or default
    if HEX.match(text):
        digits = text[1:] if len(text) > 5 else "".join(digit * 2 for digit in text[1:])
        own = int(digits[6:], 16) / 255 if len(digits) == 8 else 1
        return f"#{digits[:6]}{byte(own * opacity * 255):02x}"
    return of_name(text, opacity) if NAME.match(text) else default


def of_function(name, parts, opacity):
    try:
        numbers = [float(part.rstrip("%")) for part in parts]
        if name == "hsl":
            numbers[:3] = colorsys.hls_to_rgb(numbers[0] / 360, numbers[2] / 100, numbers[1] / 100)
        elif name == "hsv":
            numbers[:3] = colorsys.hsv_to_rgb(numbers[0] / 360, numbers[1] / 100, numbers[2] / 100)
        elif "%" in parts[0]:
            numbers[:3] = [number / 100 for number in numbers[:3]]
        else:
            numbers[:3] = [number / 255 for number in numbers[:3]]
        red, green, blue, *rest = numbers
        own = rest[0] if rest else 1
        return "#" + "".join(
            f"{byte(part * 255):02x}" for part in (red, green, blue, own * opacity)
        )
    except (ValueError, IndexError):
        return None


def byte(number):
    return min(max(round(number), 0), 255)


def of_name(name, opacity):
    """A name that pages know; matplotlib knows the same."""
    return name if opacity == 1 else (name, opacity)
