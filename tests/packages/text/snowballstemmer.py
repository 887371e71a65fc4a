"""Stems words of several languages."""

import snowballstemmer

assert snowballstemmer.stemmer("english").stemWords(["running", "flies"]) == ["run", "fli"]
assert snowballstemmer.stemmer("german").stemWord("häuser") == "haus"
