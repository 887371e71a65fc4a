"""Counts the edits between words."""

import Levenshtein

assert Levenshtein.distance("kitten", "sitting") == 3
