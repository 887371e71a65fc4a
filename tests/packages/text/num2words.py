"""Writes numbers as words of several languages."""

from num2words import num2words

assert num2words(42) == "forty-two" and num2words(42, lang="de") == "zweiundvierzig"
assert num2words(3, to="ordinal") == "third"
