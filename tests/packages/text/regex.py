"""Matches fuzzily, recursively and by script."""

import regex

assert regex.search(r"(?:colour){e<=2}", "my color").group().strip().startswith("col")
assert regex.fullmatch(r"\((?:[^()]|(?R))*\)", "(a(b)c)")
assert regex.findall(r"\p{Greek}+", "abc αβγ") == ["αβγ"]
