"""Corrects a word."""

from spellchecker import SpellChecker

spell = SpellChecker()
assert spell.unknown(["hapening", "morning"]) == {"hapening"}
assert spell.correction("hapening") == "happening"
