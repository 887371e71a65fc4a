"""Finds the closest of several words."""

from rapidfuzz import fuzz, process

assert process.extractOne("aple", ["pear", "apple"], scorer=fuzz.ratio)[0] == "apple"
