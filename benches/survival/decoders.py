# Parsers and decoders, with input made to hurt them.

# %% JSON 200,000 deep
import json
json.loads("[" * 200_000)

# %% an expression of 200,000 minus signs
compile("-" * 200_000 + "1", "x", "eval")

# %% parentheses 10,000 deep
eval("(" * 10_000 + ")" * 10_000)

# %% an expression of 100,000 terms
eval("+".join(["1"] * 100_000))

# %% a literal 100,000 deep
import ast
ast.literal_eval("[" * 100_000 + "]" * 100_000)

# %% a pickle that nests
import pickle
pickle.loads(b"(" * 1_000_000 + b"l" * 1_000_000 + b".")

# %% a pickle 100,000 deep, written
import pickle
x = []
for i in range(100_000):
    x = [x]
pickle.dumps(x)

# %% a marshalled object that lies about its length
import marshal
marshal.loads(b"[\xff\xff\xff\x7f" + b"N" * 100)

# %% code made of random bytes
def f():
    return 1
f.__code__ = f.__code__.replace(co_code=bytes(range(256)) * 4)
f()

# %% code with a wrong stack size
def f(a):
    return [a, a, a, a]
f.__code__ = f.__code__.replace(co_stacksize=0)
[f(1) for i in range(10_000)]

# %% a zip bomb
import zlib
d = zlib.compressobj(9)
data = b"".join(d.compress(bytes(1 << 24)) for i in range(64)) + d.flush()
zlib.decompress(data)

# %% an LZMA stream that asks for four gigabytes
import lzma
lzma.decompress(lzma.compress(b"x", format=lzma.FORMAT_ALONE, filters=[{"id": lzma.FILTER_LZMA1, "dict_size": 1 << 29}]))

# %% XML entities that multiply
import xml.dom.minidom
entities = '<!ENTITY a "x">' + "".join(
    f'<!ENTITY {chr(98 + i)} "{("&" + chr(97 + i) + ";") * 10}">' for i in range(12)
)
xml.dom.minidom.parseString(f"<!DOCTYPE x [{entities}]><x>&m;</x>")

# %% XML 500,000 deep
import xml.etree.ElementTree as tree
tree.fromstring("<a>" * 500_000 + "</a>" * 500_000)

# %% base64 of half a gigabyte
import base64
base64.b64encode(bytes(1 << 29))

# %% a struct with a large count
import struct
struct.pack("2000000000x")
