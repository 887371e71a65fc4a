"""Reads the entries of a feed."""

import feedparser

feed = feedparser.parse(
    "<rss version='2.0'><channel><title>News</title><item><title>One</title>"
    "<pubDate>Fri, 02 Jan 2026 10:00:00 GMT</pubDate></item></channel></rss>"
)
assert feed.feed.title == "News" and feed.entries[0].title == "One"
assert feed.entries[0].published_parsed[:4] == (2026, 1, 2, 10)
