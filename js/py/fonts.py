"""Fonts for what matplotlib's own has not: Chinese, Japanese, Korean and emoji. They come from the
package isolet-fonts when a text needs them, if the host has it.
"""

import contextlib
import importlib
import sys

import _isolet_packages as packages

PACKAGE = "isolet_fonts"
# By family, the names under which code of desktops asks for such a font.
NAMES = {
    "WenQuanYi Micro Hei": (
        "AppleGothic",
        "AR PL UMing CN",
        "Arial Unicode MS",
        "Droid Sans Fallback",
        "Heiti SC",
        "Heiti TC",
        "Hiragino Maru Gothic Pro",
        "Hiragino Sans",
        "Hiragino Sans GB",
        "IPAexGothic",
        "IPAGothic",
        "KaiTi",
        "Malgun Gothic",
        "Meiryo",
        "Microsoft JhengHei",
        "Microsoft YaHei",
        "MS Gothic",
        "NanumBarunGothic",
        "NanumGothic",
        "Noto Sans CJK JP",
        "Noto Sans CJK KR",
        "Noto Sans CJK SC",
        "Noto Sans CJK TC",
        "Noto Sans JP",
        "Noto Sans KR",
        "Noto Sans SC",
        "Noto Sans TC",
        "PingFang SC",
        "PingFang TC",
        "SimHei",
        "SimSun",
        "Source Han Sans CN",
        "Source Han Sans SC",
        "Songti SC",
        "STHeiti",
        "STSong",
        "TakaoGothic",
        "WenQuanYi Zen Hei",
        "Yu Gothic",
    ),
    "Noto Emoji": ("Apple Color Emoji", "Noto Color Emoji", "Segoe UI Emoji", "Twemoji Mozilla"),
}
REQUESTED = {name.lower() for family, names in NAMES.items() for name in (family, *names)}
FIRST = 0x1100  # DejaVu Sans has what comes before, or no font of ours has it

paths = []  # of the fonts, once they are there
is_missing = False  # whether the host has no such package


def install(patches):
    """Prepares matplotlib for when it is imported."""
    patches["matplotlib.font_manager"] = patch_manager
    patches["matplotlib.text"] = patch_text


def patch_manager(module):
    """Takes our fonts where a text needs them, and by the names that code asks for."""
    kind = module.FontManager
    find_font, find_fonts = kind.findfont, kind._find_fonts_by_props

    def findfont(self, prop, *args, **kwargs):
        provide_if_requested(prop)
        return find_font(self, prop, *args, **kwargs)

    def find_fonts_by_props(self, prop, *args, **kwargs):
        provide_if_requested(prop)
        found = find_fonts(self, prop, *args, **kwargs)
        return [*found, *(path for path in paths if path not in found)]

    findfont.__doc__ = find_font.__doc__
    kind.findfont, kind._find_fonts_by_props = findfont, find_fonts_by_props
    module.findfont = module.fontManager.findfont


def patch_text(module):
    """Looks at each text that is to be drawn."""
    original = module.Text.set_text

    def set_text(self, s):
        original(self, s)
        if not paths and not is_missing and not self._text.isascii() and is_beyond(self._text):
            provide()

    set_text.__doc__ = original.__doc__
    module.Text.set_text = set_text


def is_beyond(text):
    """Whether matplotlib's own font has no glyph for some of it."""
    if all(ord(character) < FIRST for character in text):
        return False
    manager = sys.modules["matplotlib.font_manager"]
    own = manager.get_font(manager.fontManager.findfont("DejaVu Sans"))
    return any(ord(each) >= FIRST and not own.get_char_index(ord(each)) for each in text)


def provide_if_requested(prop):
    """Provides the fonts if one of their names is among the families."""
    if paths or is_missing:
        return
    manager = sys.modules["matplotlib.font_manager"]
    if isinstance(prop, str):
        prop = manager.FontProperties._from_any(prop)
    settings = sys.modules["matplotlib"].rcParams
    names = list(prop.get_family() or ()) if prop is not None else []
    for generic in set(names) & manager.font_family_aliases:
        names += settings.get(f"font.{generic}", ())
    if any(name.lower() in REQUESTED for name in names):
        provide()


def provide():
    """Has matplotlib know the fonts of the package, if the host has that."""
    global is_missing
    is_missing = True
    packages.load(PACKAGE)
    with contextlib.suppress(ImportError):
        fonts = importlib.import_module(PACKAGE).FONTS
        manager = sys.modules["matplotlib.font_manager"]
        for family, path in fonts.items():
            for name in (family, *NAMES.get(family, ())):
                entry = manager.FontEntry(fname=path, name=name, weight=400, size="scalable")
                manager.fontManager.ttflist.append(entry)
        manager.fontManager._findfont_cached.cache_clear()
        paths.extend(fonts.values())
        is_missing = False
