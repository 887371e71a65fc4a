"""Compares words by distance and by sound."""

import jellyfish

assert jellyfish.levenshtein_distance("kitten", "sitting") == 3
assert jellyfish.soundex("Robert") == jellyfish.soundex("Rupert")
