"""Fonts with Chinese, Japanese and Korean characters, and with emoji: their paths by family."""

import pathlib

_directory = pathlib.Path(__file__).parent

FONTS = {
    "WenQuanYi Micro Hei": str(_directory / "wqy-microhei.ttf"),
    "Noto Emoji": str(_directory / "NotoEmoji_400Regular.ttf"),
}
