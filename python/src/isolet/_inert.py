"""Texts of the guest that a terminal shows: what would act on it is written out."""

from __future__ import annotations

_KEPT = "\t\n"
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0))
# What changes how other characters are shown: their direction, above all.
_ODD = (
    *(0x61C, 0x200E, 0x200F, 0xFEFF),
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
    *range(0xE0000, 0xE0080),
)
_SHOWN = {code: ascii(chr(code))[1:-1] for code in (*_CONTROLS, *_ODD) if chr(code) not in _KEPT}


def inert(text: str) -> str:
    """Returns a text without characters that a terminal acts on, but for tabs and newlines."""
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\r\n", "\n").translate(_SHOWN)
