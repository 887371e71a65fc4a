# What a program prints and shows, until somebody stops reading.

# %% lines without an end
while True:
    print("x" * 100)

# %% a line without an end
import sys
while True:
    sys.stdout.write("x" * 10_000)

# %% a gigabyte at once
print("x" * (1 << 30))

# %% both streams in turns
import sys
while True:
    print("out")
    print("err", file=sys.stderr)

# %% bytes that are no text
import sys
sys.stdout.buffer.write(bytes(range(256)) * 40_000)

# %% lone surrogates
print("\ud800" * 1_000_000)

# %% a value of 200 megabytes
"x" * 200_000_000

# %% a value whose repr never ends
class A:
    def __repr__(self):
        while True:
            pass
A()

# %% a value that contains itself
x = []
x.append(x)
x

# %% standard output closed
import sys
sys.stdout.close()

# %% standard output replaced by what raises
import sys
class Out:
    def write(self, text):
        raise OSError("no")
    def flush(self):
        raise OSError("no")
old, sys.stdout = sys.stdout, Out()
try:
    print("x")
finally:
    sys.stdout = old

# %% an exception whose text is 100 megabytes
raise ValueError("x" * 100_000_000)

# %% an exception whose text raises
class E(Exception):
    def __str__(self):
        raise RuntimeError("no text")
raise E
