"""Compresses and decompresses."""

import lz4.frame

data = b"sea " * 999
assert lz4.frame.decompress(lz4.frame.compress(data)) == data
