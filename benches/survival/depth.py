# Nesting and recursion in Python itself.

# %% a list 200,000 deep, freed
x = []
for i in range(200_000):
    x = [x]
del x

# %% the repr of a list 200,000 deep
x = []
for i in range(200_000):
    x = [x]
repr(x)

# %% two tuples 200,000 deep, compared
def deep():
    x = ()
    for i in range(200_000):
        x = (x,)
    return x
deep() == deep()

# %% the hash of a tuple 200,000 deep
x = ()
for i in range(200_000):
    x = (x,)
hash(x)

# %% recursion without an end
def f(n):
    return f(n + 1)
f(0)

# %% recursion without an end, with the limit raised
import sys
sys.setrecursionlimit(10**7)
def f(n):
    return f(n + 1) + 1
f(0)

# %% recursion that catches its own error
import sys
sys.setrecursionlimit(10**6)
def f():
    try:
        f()
    except RecursionError:
        f()
f()

# %% a chain of 100,000 generators
def wrap(inner):
    yield from inner
g = iter([1])
for i in range(100_000):
    g = wrap(g)
next(g)

# %% a chain of 100,000 iterators, freed
it = iter([1, 2])
for i in range(100_000):
    it = map(lambda x: x, it)
next(it)
del it

# %% a linked list of 500,000 objects, freed
class Node:
    def __init__(self, next):
        self.next = next
head = None
for i in range(500_000):
    head = Node(head)
del head

# %% a deep copy of a dictionary 50,000 deep
import copy
x = {}
for i in range(50_000):
    x = {"next": x}
copy.deepcopy(x)

# %% 100,000 exceptions that each have the one before as their cause
e = None
for i in range(100_000):
    n = ValueError(i)
    n.__cause__ = e
    e = n
raise e
