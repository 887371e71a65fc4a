"""Finds the words that texts have in common."""

from gensim.corpora import Dictionary

words = Dictionary([["a", "b"], ["b", "c"]])
assert words.doc2bow(["b", "b"]) == [(words.token2id["b"], 2)]
