"""Encodes text with a vocabulary of its own."""

import tiktoken

ranks = {bytes([n]): n for n in range(256)} | {b"he": 256, b"ll": 257}
encoding = tiktoken.Encoding("x", pat_str=r"\w+|\W+", mergeable_ranks=ranks, special_tokens={})
assert encoding.encode("hello") == [256, 257, ord("o")]
assert encoding.decode([256, 257]) == "hell"
