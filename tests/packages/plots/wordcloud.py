"""Draws words by their frequency."""

from wordcloud import WordCloud

cloud = WordCloud(width=200, height=100).generate_from_frequencies({"cat": 9, "dog": 3})
assert cloud.to_image().size == (200, 100)
