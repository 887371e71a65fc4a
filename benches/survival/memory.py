# Memory until something refuses it.

# %% a list that grows by a megabyte at a time
kept_here = []
while True:
    kept_here.append(bytearray(1 << 20))

# %% a string that doubles
s = "x"
while True:
    s += s

# %% eight gigabytes at once
b = bytearray(8 << 30)

# %% a list of a billion references
x = [None] * 10**9

# %% small objects without an end
x = []
while True:
    x.append(object())

# %% a dictionary without an end
d = {}
i = 0
while True:
    d[i] = str(i)
    i += 1

# %% a range as a list
list(range(10**10))

# %% memory that is refused again and again
for i in range(1000):
    try:
        x = bytearray(3 << 30)
    except MemoryError:
        pass

# %% a refusal inside an exception's handler
def fill():
    x = []
    try:
        while True:
            x.append(bytearray(1 << 20))
    except MemoryError:
        while True:
            x.append(bytearray(1 << 10))
fill()

# %% files in memory
with open("/tmp/large", "wb") as f:
    while True:
        f.write(bytes(1 << 20))

# %% a product of iterators
import itertools
list(itertools.product(range(1000), repeat=4))

# %% a string format of a gigabyte
"%1000000000d" % 1
