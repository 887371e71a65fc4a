"""Compares words by several measures."""

import textdistance

assert textdistance.levenshtein("kitten", "sitting") == 3
assert textdistance.jaccard("abc", "abd") == 0.5
assert round(textdistance.jaro_winkler("martha", "marhta"), 3) == 0.961
