"""Floats: repr round trips, rounding, special values, hex, ratios, ulps, exact sums, comparisons and conversion edge cases."""
import math
import struct
import sys

print([0.1, 0.1 + 0.2, 1 / 3, 2 / 3, 1e16, 1e15, 123456789012345680.0, 1e-5, 0.0001, 5e-324, 1.7976931348623157e308])
print([repr(float(s)) for s in ("1e3", " 1.5\n", "1_000.5", "-0", "inf", "-Infinity", "nAn", ".5", "5.", "1e400", "1e-400")])
for bad in ("", "1e", "0x10", "1__0", "one", "1,5"):
    try:
        float(bad)
    except ValueError as error:
        print(repr(bad), type(error).__name__, end="; ")
print()
print("round half even:", [round(x) for x in (0.5, 1.5, 2.5, -0.5, -1.5)], [round(x, 2) for x in (2.675, 1.005, 0.125, 0.375)], round(1234567, -3), round(-15, -1))
print("int conversions:", int(3.99), int(-3.99), math.floor(-3.5), math.ceil(-3.5), math.trunc(-3.5), int(1e22), 10**23 == 1e23, int(1e23))
print("division:", 7 // 2, -7 // 2, 7 % -3, -7 % 3, 7.5 // 2, -7.5 % 2, divmod(-7, 2), divmod(7.5, -2), math.fmod(-7.5, 2), math.remainder(7.5, 2))
inf, nan = float("inf"), float("nan")
print("infinities:", inf - inf, inf * 0, inf > 10**400, -inf < -(10**400), inf == inf, 1 / inf, -1 / inf, inf // 1, math.isinf(inf), 5 % inf, -5 % inf)
print("nan:", nan == nan, nan != nan, nan < 1, nan in [nan], [nan] == [nan], nan in [float("nan")], max(1, nan), min(nan, 1), math.isnan(nan), sorted([3, 1, 2]))
print("zeros:", 0.0 == -0.0, math.copysign(1, -0.0), str(-0.0), {0.0: "a", -0.0: "b"}, -0.0 + 0.0, 0.0 * -1, round(-0.4), abs(-0.0))
for action in (lambda: 1.0 / 0, lambda: 1.0 % 0, lambda: 0.0**-1, lambda: int(inf), lambda: int(nan), lambda: math.sqrt(-1), lambda: math.exp(1000), lambda: 1e308 * 10, lambda: 10.0**400, lambda: float(10**400)):
    try:
        print(action(), end="; ")
    except (ArithmeticError, ValueError) as error:
        print(type(error).__name__, end="; ")
print()
print("hex:", (0.1).hex(), (-2.5).hex(), float.fromhex("0x1.8p3"), float.fromhex("-0x.1"), (5e-324).hex(), float("inf").hex())
print("ratios:", (0.75).as_integer_ratio(), (0.1).as_integer_ratio(), (3.0).is_integer(), (3.5).is_integer(), (-0.125).as_integer_ratio())
print("ulps:", math.nextafter(1.0, 2), math.nextafter(0.0, 1), math.ulp(1.0), math.ulp(1e16), math.nextafter(inf, 0) == sys.float_info.max)
print("limits:", sys.float_info.max, sys.float_info.min, sys.float_info.epsilon, sys.float_info.dig, sys.float_info.mant_dig, 1.0 + sys.float_info.epsilon / 2 == 1.0)
print("frexp:", math.frexp(10.0), math.ldexp(0.625, 4), math.modf(-3.25), math.frexp(0.0), math.ldexp(1.0, -1074))
print("bits:", struct.pack(">d", -0.5).hex(), struct.unpack("<d", bytes(8))[0], struct.pack(">f", 0.1).hex(), struct.unpack(">f", struct.pack(">f", 0.1))[0], struct.pack(">e", 1.5).hex())
tenth = [0.1] * 10
print("sums:", math.fsum(tenth), math.fsum([1e100, 1.0, -1e100]), 0.1 * 3, 0.1 + 0.1 + 0.1 == 0.3, math.isclose(0.1 + 0.2, 0.3), math.isclose(1e-10, 0), math.isclose(1e-10, 0, abs_tol=1e-9))
print("roots:", math.sqrt(2), math.isqrt(10**30 + 1), math.hypot(3, 4), math.hypot(1, 2, 2), math.dist((0, 0), (3, 4)), round(math.cbrt(27.0), 12))
print("comparisons:", 1 == 1.0, 2**53 == float(2**53), 2**53 + 1 == float(2**53 + 1), 0.1 < 1 / 10 + 1e-18, 10**16 < 1e16 + 1, hash(1) == hash(1.0) == hash(True))

for value in (math.pi, math.e, math.tau, math.sin(1), math.cos(1), math.tan(1), math.atan2(-1, -1), math.log(10), math.log2(10), math.log10(2), math.exp(1.5), math.sinh(1), math.gamma(4.5), math.erf(0.5), math.log1p(1e-10), math.expm1(1e-10)):
    print(f"{value:.12g}", end=" ")
print()
print("exact logs:", math.log2(1024), math.log10(10**20), math.log(8, 2), f"{math.log(10**400):.10f}", math.degrees(math.pi), math.radians(180) == math.pi)


def shortest(value):
    """repr is the shortest decimal that reads back to the same float."""
    return next(text for digits in range(1, 18) if float(text := f"{value:.{digits}g}") == value)


for value in (0.1, 1 / 3, 2**0.5, 1e21 + 1, 123.456, 5e-324):
    assert float(repr(value)) == value
    print(shortest(value), end=" ")
print()


def kahan(values):
    total = correction = 0.0
    for value in values:
        y = value - correction
        t = total + y
        correction = (t - total) - y
        total = t
    return total


values = [1.0 / n for n in range(1, 2000)]
naive = 0.0
for value in values:
    naive += value
print(f"naive {naive!r} kahan {kahan(values)!r} exact {math.fsum(values)!r}")


def newton(f, df, x, tolerance=1e-12):
    for step in range(1, 100):
        x, previous = x - f(x) / df(x), x
        if abs(x - previous) < tolerance:
            return round(x, 10), step
    raise ArithmeticError("did not converge")


def simpson(f, a, b, n):
    h = (b - a) / n
    return h / 3 * math.fsum((1 if i in (0, n) else 4 if i % 2 else 2) * f(a + i * h) for i in range(n + 1))


print("newton:", newton(lambda x: x * x - 2, lambda x: 2 * x, 1.0), newton(lambda x: x**3 - x - 2, lambda x: 3 * x * x - 1, 1.5))
print(f"simpson: {simpson(math.sin, 0, math.pi, 100):.8f} {simpson(lambda x: x**3, 0, 2, 2):.8f}")
