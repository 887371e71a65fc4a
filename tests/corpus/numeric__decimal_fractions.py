"""decimal and fractions: contexts, rounding modes, signals, quantize, exactness, limit_denominator, mixed arithmetic."""
import decimal
import math
from decimal import Decimal as D
from fractions import Fraction as F

print(D("0.1") + D("0.2"), D(1) / D(7), D("1.10") * 3, D("1.0") == D("1.00"), str(D("1.00")), D(0.1), D("-0"), D("1E+3"), D("  12.5 "))
print(D("10") / 3, D("10") // 3, D("-10") % 3, divmod(D("7.5"), 2), D(2) ** D("0.5"), D(2).sqrt(), D(10).ln(), D(100).log10(), D(1).exp())
modes = [m for m in dir(decimal) if m.startswith("ROUND_")]
for mode in modes:
    print(f"{mode:16}", [str(D(v).quantize(D("1"), rounding=mode)) for v in ("2.5", "-2.5", "1.1", "-1.1", "1.5", "1.05")])
print(D("1234.5678").quantize(D("0.01")), D("5").quantize(D("0.001")), round(D("2.675"), 2), round(D("2.5")), D("123.456").to_integral_value(), D("1e2").quantize(D(1)))

with decimal.localcontext() as context:
    context.prec = 50
    print(D(1) / D(7), D(2).sqrt())
    context.prec, context.rounding = 4, decimal.ROUND_UP
    print(D(1) / D(7), D("123456") + 0, +D("1.23451"))
print("back to", decimal.getcontext().prec, D(1) / 7)

for action in (lambda: D(1) / 0, lambda: D(0) / 0, lambda: D("abc"), lambda: D("1e999999") * 10, lambda: D("NaN").__int__(), lambda: D(-1).sqrt(), lambda: D("sNaN") + 1):
    try:
        print(action(), end="; ")
    except (decimal.DecimalException, ValueError, ArithmeticError) as error:
        print(type(error).__name__, end="; ")
print()
with decimal.localcontext() as context:
    context.traps[decimal.DivisionByZero] = False
    context.traps[decimal.InvalidOperation] = False
    context.clear_flags()
    print(D(1) / 0, D(-1) / 0, D(0) / 0, D("bad"), sorted(f.__name__ for f, on in context.flags.items() if on))
    context.traps[decimal.Inexact] = True
    try:
        D(1) / 3
    except decimal.Inexact:
        print("inexact trapped;", D(1) / 4)
print(D("NaN") == D("NaN"), D("Infinity") > 10**30, D("NaN").is_nan(), D("-Infinity").is_infinite(), D("1.5").as_tuple(), D("3.14").as_integer_ratio(), D("1E-7").adjusted())
print(sorted([D("1.5"), 1, F(4, 3).numerator, D("1.25"), D("-3")]), max(D("1.10"), D("1.1")), D("1.50").normalize(), D("100").normalize(), f"{D('1E+2'):f}", D("7").compare(D("8")), D("1.2").copy_sign(D("-1")))
print(hash(D("1.5")) == hash(1.5) == hash(F(3, 2)), D("0.1") == 0.1, D("0.5") == 0.5, D("0.1") < 0.1, {D("1.0"): "a"}[1])
try:
    D("1.1") + 1.1
except TypeError as error:
    print("no mixing with float:", type(error).__name__)
print(D("1234567.891").to_eng_string(), D("1.2E+10").to_eng_string(), D(12).fma(3, D("0.5")), D("12.3").scaleb(2), D("101").logical_and(D("110")), D("5.5").remainder_near(2), D("1").next_plus())


def invoice(lines, rate):
    """Money the way it should be done."""
    cent = D("0.01")
    net = sum((D(price) * quantity for _, quantity, price in lines), D(0))
    tax = (net * D(rate) / 100).quantize(cent, rounding=decimal.ROUND_HALF_UP)
    return net.quantize(cent), tax, (net + tax).quantize(cent)


print(invoice([("pen", 3, "1.15"), ("ink", 2, "7.995"), ("pad", 10, "0.333")], "7.5"))


def pi():
    """Archimedes with 40 digits, from the documentation's recipe."""
    with decimal.localcontext() as context:
        context.prec = 42
        three = D(3)
        last, t, s, n, na, d, da = 0, three, 3, 1, 0, 0, 24
        while s != last:
            last = s
            n, na = n + na, na + 8
            d, da = d + da, da + 32
            t = (t * n) / d
            s += t
        context.prec = 40
        return +s


print(pi())
print(F(3, 4) + F(1, 6), F("0.125"), F("-7/21"), F(0.5), F(1.1), F(D("1.1")), F(5), F("1e-3"), F(3, -9), -F(1, 3) // F(1, 4), F(7, 3) % 1, F(1, 2) ** 3, F(1, 2) ** -2, F(4, 9) ** F(1, 2))
print(F(math.pi).limit_denominator(1000), F(math.pi).limit_denominator(10), F("0.333").limit_denominator(5), F(10, 4).numerator, float(F(1, 3)), int(F(-7, 2)), round(F(7, 2)), round(F(22, 7), 2), math.floor(F(-1, 2)), math.ceil(F(1, 2)))
print(F(1, 3) + 1, 1 - F(1, 3), F(1, 2) + 0.25, F(1, 2) == 0.5, F(1, 3) < 0.34, sum([F(1, n) for n in range(1, 11)]), sorted([F(1, 2), F(1, 3), 0.4]), repr(F(6, 8)), str(F(6, 3)))
try:
    F(1, 0)
except ZeroDivisionError as error:
    print(type(error).__name__)


def continued(value, terms):
    parts = []
    for _ in range(terms):
        whole = math.floor(value)
        parts.append(whole)
        if value == whole:
            break
        value = 1 / (value - whole)
    return parts


def egyptian(value):
    parts = []
    while value:
        unit = F(1, math.ceil(1 / value))
        parts.append(str(unit))
        value -= unit
    return parts


def bernoulli(n):
    row = [F(0)] * (n + 1)
    for m in range(n + 1):
        row[m] = F(1, m + 1)
        for j in range(m, 0, -1):
            row[j - 1] = j * (row[j - 1] - row[j])
    return row[0]


print(continued(F(415, 93), 9), continued(F(math.e), 8), egyptian(F(7, 15)), [str(bernoulli(n)) for n in (0, 1, 2, 4, 6, 8, 10, 12)])
