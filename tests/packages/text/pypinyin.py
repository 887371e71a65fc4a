"""Writes Chinese in Latin letters."""

from pypinyin import Style, lazy_pinyin

assert lazy_pinyin("中国") == ["zhong", "guo"]
assert lazy_pinyin("中国", style=Style.TONE) == ["zhōng", "guó"]
