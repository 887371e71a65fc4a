"""Names pictures in text and finds them."""

import emoji

assert emoji.emojize("Hi :thumbs_up:") == "Hi 👍"
assert emoji.demojize("👍") == ":thumbs_up:" and emoji.emoji_count("a👍b🐍") == 2
