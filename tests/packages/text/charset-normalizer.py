"""Guesses the encoding and the language of bytes."""

from charset_normalizer import from_bytes

text = "Привет, как дела? Это довольно длинный русский текст без смысла. " * 3
best = from_bytes(text.encode("windows-1251")).best()
assert str(best) == text and best.language == "Russian"
