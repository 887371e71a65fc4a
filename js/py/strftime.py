"""Times as text, as glibc writes them: the C library that is here leaves a whole text empty for one
directive that it does not know, and has neither all of glibc's flags nor its directives.
"""

import functools
import re
import time

# What both libraries write alike: always, and from the year 1000 on.
ALIKE = re.compile(r"(?:[^%]|%[%aAbBdDeghHIjmMnprRStTuUVwWxXyYCcFG])*+", re.DOTALL)
WITH_YEAR = re.compile(r"%[YCcFG]")
FIRST_ALIKE, LAST_ALIKE = 1000, 9999

ASKED = "%Y %m %d %H %I %j %M %S %w %u %U %W %V %G %a %A %b %B %p %z"
NAMES = "YmdHIjMSwuUWVGaAbBpz"
TEXTS = frozenset("aAbBpz")
FLAGS = "_-0^#"
# How many digits numbers have at least, and which are filled up with spaces.
DIGITS = {**dict.fromkeys("dHIMSmUWVgyekl", 2), **dict.fromkeys("wuYGCs", 1), "j": 3}
SPACED = "ekl"
# What others stand for.
WHOLE = {
    "c": "%a %b %e %H:%M:%S %Y",
    "D": "%m/%d/%y",
    "F": "%Y-%m-%d",
    "R": "%H:%M",
    "r": "%I:%M:%S %p",
    "T": "%H:%M:%S",
    "X": "%H:%M:%S",
    "x": "%m/%d/%y",
}
# Which take no modifier: none of both, no `E`, no `O`.
UNMODIFIED, NO_E, NO_O = frozenset("%aADF"), frozenset("bhBdeHIjklmMSUWwVgG"), frozenset("cxXY")
FIRST_ROOM, ROOM = 1024, 256  # characters for a text, and for one of its format

plain = None


def install():
    """Puts it in place; the module `datetime` looks for it at each call."""
    global plain
    plain = time.strftime
    time.strftime = functools.wraps(plain)(lambda *arguments: strftime(*arguments))


def strftime(format=None, *t):
    if not isinstance(format, str) or len(t) > 1:
        return plain(*(() if format is None else (format, *t)))  # which raises
    if ALIKE.fullmatch(format) and (not WITH_YEAR.search(format) or is_alike(t)):
        return plain(format, *t)
    when = t[0] if t else time.localtime()
    text = write(format, Fields(when), room := room_of(format))
    return "" if text is None or len(text) >= room else text


def is_alike(t):
    try:
        return not t or FIRST_ALIKE <= t[0][0] <= LAST_ALIKE
    except Exception:
        return True  # the C function says what is wrong with it


def room_of(format):
    """How long a text can be that CPython makes room for."""
    room = FIRST_ROOM
    while room < ROOM * len(format):
        room += room
    return room


class Fields:
    """The fields of a time, by their directives."""

    def __init__(self, when):
        found = dict(zip(NAMES, plain(ASKED, when).split(" ")))
        self.values = {
            name: value if name in TEXTS else int(value) for name, value in found.items()
        }
        year, month = self.values["Y"], self.values["m"]
        day, hour = self.values["d"], self.values["H"]
        self.is_summer = when[8]
        zone = when.tm_zone if isinstance(when, time.struct_time) else None
        if not zone:
            zone = time.tzname[self.is_summer != 0] if self.is_summer >= 0 else ""
        self.values |= {
            "C": year // 100,
            "e": day,
            "g": self.values["G"] % 100,
            "h": self.values["b"],
            "k": hour,
            "l": self.values["I"],
            "P": self.values["p"].lower(),
            "y": year % 100,
            "Z": zone,
        }
        self.local = (year, month, day, hour, self.values["M"], self.values["S"], 0, 1)

    def seconds(self):
        try:
            return int(time.mktime((*self.local, self.is_summer)))
        except OverflowError:
            return -1


def write(format, fields, room):
    """The text; None if there is no room for it."""
    written, at = [], 0
    while (start := format.find("%", at)) >= 0:
        written.append(format[at:start])
        pad, is_upper, is_other = "", False, False
        at = start + 1
        while format[at : at + 1] and format[at] in FLAGS:
            if format[at] == "^":
                is_upper = True
            elif format[at] == "#":
                is_other = True
            else:
                pad = format[at]
            at += 1
        digits = at
        while "0" <= format[at : at + 1] <= "9":
            at += 1
        width = int(format[digits:at][:10] or -1)
        if width >= room:
            return None
        modifier = format[at : at + 1] if format[at : at + 1] in ("E", "O") else ""
        at += len(modifier)
        letter = format[at : at + 1]
        at += "\0" < letter < "\x80"
        if modifier and (letter in UNMODIFIED or letter in (NO_E if modifier == "E" else NO_O)):
            # The names of months are told from the others after the flag is heeded.
            is_upper = is_upper or is_other and letter in ("b", "h", "B")
            letter = ""
        if letter in WHOLE:
            text = write(WHOLE[letter], fields, room)
        elif letter in DIGITS:
            value = fields.seconds() if letter == "s" else fields.values[letter]
            if letter in SPACED and pad not in ("0", "-"):
                pad = "_"
            least = 1 if letter == "s" else max(DIGITS[letter], width)
            text, width = number(value, least, pad, width)
        elif letter == "z":
            text = offset(fields, pad, width)
            width = -1
        elif letter in fields.values and letter:
            text = fields.values[letter]
            if is_other and letter in "pZ":
                text, is_upper = text.lower(), False
            is_upper = (is_upper or is_other and letter in "aAbBh") and letter != "P"
        elif letter in ("n", "t", "%") and letter:
            text, is_upper = {"n": "\n", "t": "\t", "%": "%"}[letter], False
        else:  # it is kept as it is
            text = format[format.rindex("%", start, at) : at]
        if is_upper:
            text = text.upper()
        written.append(filled(text, pad, width))
    written.append(format[at:])
    return "".join(written)


def number(value, least, pad, width):
    """The digits of a number, and what is left to be filled of the width."""
    text = str(value)
    missing = least - len(text)
    if pad == "-" or missing <= 0:
        return text, width
    if pad == "_":
        return " " * missing + text, -1
    sign = "-" if value < 0 else ""
    return sign + "0" * missing + text.removeprefix("-"), width


def offset(fields, pad, width):
    text = fields.values["z"]
    if fields.is_summer < 0 or not text:
        return ""
    digits, _ = number(int(text[1:]), max(4, width), pad, -1)
    return filled(text[0], pad, width) + filled(digits, pad, width)


def filled(text, pad, width):
    return ("0" if pad == "0" else " ") * (width - len(text)) + text
