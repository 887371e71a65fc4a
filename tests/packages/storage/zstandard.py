"""Compresses and decompresses."""

import zstandard

data = b"sea " * 999
packed = zstandard.ZstdCompressor().compress(data)
assert len(packed) < 99 and zstandard.ZstdDecompressor().decompress(packed) == data
