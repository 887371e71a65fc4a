"""Stems words and counts pairs of them."""

import nltk
from nltk.stem import PorterStemmer
from nltk.tokenize import wordpunct_tokenize

words = wordpunct_tokenize("The cats are running, the cats ran.")
assert [PorterStemmer().stem(word) for word in words[:4]] == ["the", "cat", "are", "run"]
assert nltk.FreqDist(nltk.bigrams(words))["cats", "are"] == 1
