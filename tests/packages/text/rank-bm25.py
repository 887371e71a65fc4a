"""Finds the text that fits words best."""

from rank_bm25 import BM25Okapi

texts = ["the sea is calm", "a dog ran home", "boats on the sea at night"]
index = BM25Okapi([text.split() for text in texts])
assert index.get_top_n(["dog"], texts, n=1) == ["a dog ran home"]
