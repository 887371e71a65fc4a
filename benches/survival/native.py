# Packages with compiled code.

# %% numpy: an array of 64 gigabytes
import numpy
numpy.zeros(8_000_000_000)

# %% numpy: a product that takes long
import numpy
a = numpy.ones((6000, 6000))
a @ a

# %% numpy: a recursive object array
import numpy
a = numpy.empty(1, dtype=object)
a[0] = a
a == a

# %% numpy: strides that point outside
import numpy
numpy.lib.stride_tricks.as_strided(numpy.ones(1), (1 << 26,), (1 << 12,)).sum()

# %% numpy: a sort that never ends
import numpy
while True:
    numpy.sort(numpy.arange(10_000_000)[::-1])

# %% numpy: bytes that are no array
import io, numpy
numpy.load(io.BytesIO(b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999,), }" + b" " * 60))

# %% pandas: a cross join that takes all memory
import pandas
a = pandas.DataFrame({"x": range(100_000)})
a.merge(a, how="cross")

# %% pandas: a CSV of one endless line
import io, pandas
pandas.read_csv(io.StringIO("a," * 5_000_000))

# %% sqlite: a query without an end
import sqlite3
sqlite3.connect(":memory:").execute("with recursive n(x) as (select 1 union all select x + 1 from n) select max(x) from n").fetchall()

# %% sqlite: an expression 100,000 deep
import sqlite3
sqlite3.connect(":memory:").execute("select " + "(" * 100_000 + "1" + ")" * 100_000)

# %% sqlite: a database of random bytes
import random, sqlite3
with open("/tmp/random.db", "wb") as f:
    f.write(b"SQLite format 3\0" + random.Random(1).randbytes(100_000))
sqlite3.connect("/tmp/random.db").execute("select * from sqlite_master").fetchall()

# %% ctypes: a callback that calls itself
import ctypes
T = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
@T
def f(n):
    return f(n + 1)
f(0)
