"""Splits text into words and sentences."""

import spacy

nlp = spacy.blank("en")
nlp.add_pipe("sentencizer")
assert [s.text for s in nlp("I came. I saw.").sents] == ["I came.", "I saw."]
