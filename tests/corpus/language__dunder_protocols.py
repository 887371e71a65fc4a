"""The data model: arithmetic with reflection, comparison, containers, callables, conversion, hashing."""
from functools import total_ordering
from math import gcd


@total_ordering
class Ratio:
    """A tiny rational number that speaks every numeric protocol."""

    __slots__ = ("n", "d")

    def __init__(self, n, d=1):
        if d == 0:
            raise ZeroDivisionError("ratio with denominator 0")
        sign = -1 if d < 0 else 1
        g = gcd(n, d) or 1
        self.n, self.d = sign * n // g, sign * d // g

    @staticmethod
    def _coerce(other):
        if isinstance(other, Ratio):
            return other
        return Ratio(other) if isinstance(other, int) else None

    def _binary(self, other, function):
        other = self._coerce(other)
        return NotImplemented if other is None else function(self, other)

    def __add__(self, other):
        return self._binary(other, lambda a, b: Ratio(a.n * b.d + b.n * a.d, a.d * b.d))

    __radd__ = __add__

    def __neg__(self):
        return Ratio(-self.n, self.d)

    def __sub__(self, other):
        return self._binary(other, lambda a, b: a + -b)

    def __rsub__(self, other):
        return -self + other

    def __mul__(self, other):
        return self._binary(other, lambda a, b: Ratio(a.n * b.n, a.d * b.d))

    __rmul__ = __mul__

    def __truediv__(self, other):
        return self._binary(other, lambda a, b: Ratio(a.n * b.d, a.d * b.n))

    def __rtruediv__(self, other):
        return self._binary(other, lambda a, b: b / a)

    def __pow__(self, power):
        return Ratio(self.n**power, self.d**power) if power >= 0 else Ratio(self.d**-power, self.n**-power)

    def __divmod__(self, other):
        q = (self / other).__floor__()
        return q, self - other * q

    def __floor__(self):
        return self.n // self.d

    def __abs__(self):
        return Ratio(abs(self.n), self.d)

    def __round__(self, digits=0):
        return round(self.n / self.d, digits)

    def __float__(self):
        return self.n / self.d

    def __int__(self):
        return int(self.n / self.d)

    def __bool__(self):
        return self.n != 0

    def __eq__(self, other):
        return self._binary(other, lambda a, b: (a.n, a.d) == (b.n, b.d))

    def __lt__(self, other):
        return self._binary(other, lambda a, b: a.n * b.d < b.n * a.d)

    def __hash__(self):
        return hash((self.n, self.d)) if self.d != 1 else hash(self.n)

    def __repr__(self):
        return f"{self.n}/{self.d}"

    def __format__(self, spec):
        return format(float(self), spec) if spec else repr(self)


half, third = Ratio(1, 2), Ratio(2, 6)
print(half + third, half - third, half * third, half / third, half**3, half**-2, -half, abs(Ratio(-3, 4)))
print(1 + half, 2 - third, 3 * third, 1 / third, sum([half, third, Ratio(1, 6)]))
print(half > third, half >= 1, third <= Ratio(1, 3), max(half, third), sorted([half, third, Ratio(-1)]))
print(float(half), int(Ratio(-7, 2)), bool(Ratio(0)), round(third, 3), divmod(Ratio(7, 2), half + 1))
print({half: "a", Ratio(3, 6): "b", Ratio(2): "c", 2: "d"}, half == 0.5, half != "x")
print(f"{half} {third:.4f} {third:>10.2%}")
for attempt in (lambda: half + 1.5, lambda: "a" * half, lambda: Ratio(1, 0), lambda: half < "x"):
    try:
        attempt()
    except (TypeError, ZeroDivisionError) as error:
        print(type(error).__name__)


class Grid:
    """Container protocol: tuple keys, slices, iteration, reversal, membership, deletion, missing keys."""

    def __init__(self, width, height):
        self.width, self.height, self.cells = width, height, {}

    def __getitem__(self, key):
        if isinstance(key, slice):
            return [self[x, 0] for x in range(*key.indices(self.width))]
        if key is ...:
            return "everything"
        return self.cells.get(key, ".")

    def __setitem__(self, key, value):
        self.cells[key] = value

    def __delitem__(self, key):
        del self.cells[key]

    def __len__(self):
        return self.width * self.height

    def __iter__(self):
        return ("".join(self[x, y] for x in range(self.width)) for y in range(self.height))

    def __reversed__(self):
        return iter(list(self)[::-1])

    def __contains__(self, value):
        return value in self.cells.values()

    def __call__(self, text, *, at=(0, 0)):
        for offset, letter in enumerate(text):
            self[at[0] + offset, at[1]] = letter
        return self

    def __matmul__(self, other):
        return list(zip(self, other))

    def __iadd__(self, key):
        self[key] = "+"
        return self

    def __index__(self):
        return self.width


grid = Grid(5, 2)
same = grid
grid("hello", at=(0, 0))("yo", at=(3, 1))
grid += (0, 1)
print(list(grid), list(reversed(grid)), len(grid), "y" in grid, "z" in grid, same is grid)
del grid[0, 0]
print(grid[0:4:2], grid[...], grid @ Grid(2, 2), "abcdefgh"[grid], hex(grid), [0] * grid)
