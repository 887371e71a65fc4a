"""Makes plurals and counts words."""

from textblob import Word, WordList

assert Word("child").pluralize() == "children"
assert WordList(["a", "b", "A"]).count("a") == 2
