"""Guesses the language of a text."""

from langdetect import DetectorFactory, detect

DetectorFactory.seed = 0
assert detect("Das ist ein ganz normaler deutscher Satz.") == "de"
assert detect("Ceci est une phrase tout à fait normale.") == "fr"
