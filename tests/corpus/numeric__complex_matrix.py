"""Complex numbers and cmath, roots of polynomials, FFT, matrix algebra with fractions, number-theoretic checks."""
import cmath
import math
from fractions import Fraction


def show(z, digits=6):
    """A complex rounded so that libm differences in the last bit do not show."""
    real, imag = round(z.real, digits) + 0.0, round(z.imag, digits) + 0.0
    return f"{real:g}{imag:+g}j"


z, w = 3 + 4j, complex("1-2j")
print(z + w, z - w, z * w, z / (1 + 1j), z**2, -z, abs(z), z.conjugate(), z.real, z.imag, z == complex(3, 4), z != 3, complex(3) == 3)
print(complex("-j"), complex(" 1e3+2.5j "), complex("inf-nanj").real, complex(2), 1j * 1j, (1 + 2j) * 2, 2j / 2, repr(complex(-0.0, -0.0)), repr(-0j), str(1e20j), hash(3 + 0j) == hash(3), bool(0j))
for bad in (lambda: complex("1 + 2j"), lambda: z < w, lambda: z // w, lambda: int(z), lambda: 0j**-1, lambda: z / 0, lambda: complex("1", 2)):
    try:
        bad()
    except (ValueError, TypeError, ZeroDivisionError) as error:
        print(type(error).__name__, end=" ")
print()
print([show(v) for v in (cmath.sqrt(-2), cmath.exp(1j * math.pi), cmath.log(-1), cmath.sin(1 + 1j), cmath.rect(2, math.pi / 2), (-8) ** (1 / 3), (1 + 1j) ** 0.5, 1j**1j)])
print([round(v, 9) for v in cmath.polar(-1 - 1j)], round(cmath.phase(-1j), 9), cmath.isclose(1j**2, -1), cmath.isnan(complex(math.nan, 0)), cmath.isinf(complex(0, math.inf)))


def roots(coefficients, rounds=200):
    """Durand-Kerner: all roots of a polynomial at once."""
    degree = len(coefficients) - 1
    lead = coefficients[0]
    guess = [(0.4 + 0.9j) ** n for n in range(degree)]
    for _ in range(rounds):
        for i, root in enumerate(guess):
            value = 0
            for c in coefficients:
                value = value * root + c / lead
            guess[i] = root - value / math.prod((root - other for j, other in enumerate(guess) if j != i), start=1)
    return sorted(guess, key=lambda r: (round(r.real, 6), round(r.imag, 6)))


print([show(r) for r in roots([1, 0, 0, -1])], [show(r) for r in roots([2, -12, 22, -12])], [show(r) for r in roots([1, 0, 1])])


def fft(values, sign=-1):
    n = len(values)
    if n == 1:
        return list(values)
    even, odd = fft(values[::2], sign), fft(values[1::2], sign)
    twisted = [cmath.exp(sign * 2j * math.pi * k / n) * odd[k] for k in range(n // 2)]
    return [e + t for e, t in zip(even, twisted)] + [e - t for e, t in zip(even, twisted)]


signal = [math.sin(2 * math.pi * 3 * t / 16) + 0.5 for t in range(16)]
spectrum = fft(signal)
print([round(abs(v), 6) for v in spectrum[:9]])
assert all(math.isclose(a, (b / 16).real, abs_tol=1e-9) for a, b in zip(signal, fft(spectrum, 1)))


def multiply_polynomials(a, b):
    size = 1 << (len(a) + len(b) - 2).bit_length()
    fa, fb = (fft(list(map(complex, p)) + [0j] * (size - len(p))) for p in (a, b))
    return [round((v / size).real) for v in fft([x * y for x, y in zip(fa, fb)], 1)][: len(a) + len(b) - 1]


print(multiply_polynomials([1, 2, 3], [4, 5]), multiply_polynomials([1] * 5, [1] * 5))


class Matrix:
    def __init__(self, rows):
        self.rows = [[Fraction(v) for v in row] for row in rows]

    def __matmul__(self, other):
        columns = list(zip(*other.rows))
        return Matrix([[sum(a * b for a, b in zip(row, column)) for column in columns] for row in self.rows])

    def __pow__(self, power):
        result, base = Matrix.identity(len(self.rows)), self
        while power:
            if power & 1:
                result = result @ base
            base, power = base @ base, power >> 1
        return result

    def __eq__(self, other):
        return self.rows == other.rows

    def __repr__(self):
        return "[" + "; ".join(" ".join(map(str, row)) for row in self.rows) + "]"

    @classmethod
    def identity(cls, n):
        return cls([[int(i == j) for j in range(n)] for i in range(n)])

    @property
    def T(self):
        return Matrix(zip(*self.rows))

    def reduce(self, right):
        """Gauss-Jordan on [self | right]; returns the determinant and the solved right side."""
        n, determinant = len(self.rows), Fraction(1)
        work = [row + extra for row, extra in zip(self.rows, right.rows)]
        for column in range(n):
            pivot = next((r for r in range(column, n) if work[r][column]), None)
            if pivot is None:
                raise ZeroDivisionError("singular matrix")
            if pivot != column:
                work[column], work[pivot], determinant = work[pivot], work[column], -determinant
            determinant *= work[column][column]
            work[column] = [v / work[column][column] for v in work[column]]
            for r in range(n):
                if r != column and work[r][column]:
                    work[r] = [a - work[r][column] * b for a, b in zip(work[r], work[column])]
        return determinant, Matrix([row[n:] for row in work])


m = Matrix([[2, 1, 1], [1, 3, 2], [1, 0, 0]])
determinant, inverse = m.reduce(Matrix.identity(3))
print(m, determinant, inverse, m @ inverse == Matrix.identity(3), m.T)
print(m.reduce(Matrix([[4], [5], [6]]))[1], (Matrix([[1, 1], [1, 0]]) ** 90).rows[0][1], Matrix([[1, 2]]) @ Matrix([[3], [4]]))
hilbert = Matrix([[Fraction(1, i + j + 1) for j in range(5)] for i in range(5)])
print(hilbert.reduce(Matrix.identity(5)))
try:
    Matrix([[1, 2], [2, 4]]).reduce(Matrix.identity(2))
except ZeroDivisionError as error:
    print("ZeroDivisionError:", error)


def mandelbrot(width, height):
    for row in range(height):
        line = ""
        for column in range(width):
            c, point = complex(-2.2 + 3.0 * column / width, -1.2 + 2.4 * row / (height - 1)), 0j
            for step in range(30):
                point = point * point + c
                if abs(point) > 2:
                    break
            line += " .:-=+*#%@"[min(step // 3, 9)]
        yield line.rstrip()


print("\n".join(mandelbrot(60, 15)))
