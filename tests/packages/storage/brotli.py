"""Compresses and decompresses."""

import brotli

data = b"sea " * 999
assert brotli.decompress(brotli.compress(data)) == data
