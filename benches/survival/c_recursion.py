# Recursion through C code, which Python's own limit does not count.

# %% a __repr__ that asks for its own
class A:
    def __repr__(self):
        return repr(self)
repr(A())

# %% a __getattr__ that asks for itself
class A:
    def __getattr__(self, name):
        return getattr(self, name + "x")
A().a

# %% an __eq__ that compares again, below sorted
class A:
    def __lt__(self, other):
        return sorted([self, other])[0] is self
sorted([A(), A()])

# %% a cached function that calls itself
import functools, sys
sys.setrecursionlimit(10**6)
@functools.cache
def f(n):
    return f(n - 1) if n else 0
f(200_000)

# %% a partial of a partial, 100,000 times
import functools, sys
sys.setrecursionlimit(10**6)
class Part(functools.partial):
    pass
f = print
for i in range(100_000):
    p = Part(f)
    p.x = 1
    f = p
f("x")

# %% an __instancecheck__ that checks again
class M(type):
    def __instancecheck__(cls, x):
        return isinstance(x, cls)
class A(metaclass=M):
    pass
isinstance(1, A)

# %% a sort key that sorts
import sys
sys.setrecursionlimit(10**6)
def key(x):
    return sorted([x], key=key)
sorted([1], key=key)

# %% str.join over an iterator that joins
import sys
sys.setrecursionlimit(10**6)
def words():
    yield "".join(words())
"".join(words())

# %% a __hash__ that looks itself up
d = {}
class A:
    def __hash__(self):
        return hash(frozenset([self]))
d[A()] = 1

# %% a descriptor that reads itself
class D:
    def __get__(self, o, t=None):
        return o.x
class A:
    x = D()
A().x

# %% an import that imports itself by a hook
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        return __import__(name + "x")
sys.meta_path.insert(0, Finder())
try:
    import nothing_of_this_name
finally:
    sys.meta_path.pop(0)

# %% abstract syntax trees compared, 50,000 deep
import ast
def tree():
    node = ast.Constant(1)
    for i in range(50_000):
        node = ast.UnaryOp(ast.USub(), node)
    return node
ast.dump(tree())
