"""Integers of any size: arithmetic, bases, bits, modular inverses, primes, conversions and the digit limit."""
import itertools
import math
import sys

googol = 10**100
print(googol + 1, -googol // 7 % 1000, (googol - 1) % 97, divmod(2**200, 3**50))
print(math.factorial(30), math.comb(100, 50), math.perm(20, 10), math.gcd(2**60 * 3, 6**20), math.lcm(*range(1, 41)))
print(pow(3, 10**18, 10**9 + 7), pow(17, -1, 3120), pow(2, 521, 2**61 - 1), [pow(-2, n) for n in range(6)], 2**-2)
try:
    pow(6, -1, 9)
except ValueError as error:
    print("ValueError:", error)
print([int(t, b) for t, b in (("ff", 16), ("0b1010", 0), ("z", 36), ("-0o17", 0), ("1_000", 10), ("１２", 10))], bin(-10), oct(64), hex(2**70))
for bad in (("12", 2), ("", 10), ("0x", 16), ("9", 37), ("_1", 10)):
    try:
        int(*bad)
    except ValueError:
        print("rejected", bad, end="; ")
print()
print((2**100).bit_length(), (2**100 - 1).bit_count(), -5 >> 1, -5 & 0xFF, ~7, 5 ^ -3, 1 << 70, (-1) << 3, 6 & 3 | 8, (10).bit_length(), (0).bit_length())
print(int.from_bytes(googol.to_bytes(42, "big"), "big") == googol, (-1).to_bytes(3, "big", signed=True), int.from_bytes(b"\x80", "big", signed=True))
try:
    (256).to_bytes(1, "big")
except OverflowError as error:
    print(type(error).__name__)
print(True + True, isinstance(True, int), int("  42\n"), int(-7.9), round(12345, -2), (5).numerator, (-5).__abs__(), 7 .real, 5 .as_integer_ratio())


def is_prime(n):
    """Deterministic Miller-Rabin below 3.3e24."""
    if n < 2:
        return False
    small = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    for p in small:
        if n % p == 0:
            return n == p
    d, s = n - 1, 0
    while d % 2 == 0:
        d, s = d // 2, s + 1
    for a in small:
        x = pow(a, d, n)
        if x in (1, n - 1):
            continue
        for _ in range(s - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def pollard(n):
    if n % 2 == 0:
        return 2
    for c in itertools.count(1):
        x = y = 2
        d = 1
        while d == 1:
            x = (x * x + c) % n
            y = (y * y + c) % n
            y = (y * y + c) % n
            d = math.gcd(abs(x - y), n)
        if d != n:
            return d


def factor(n):
    if n == 1:
        return []
    if is_prime(n):
        return [n]
    d = pollard(n)
    return sorted(factor(d) + factor(n // d))


print([p for p in range(60) if is_prime(p)], is_prime(2**61 - 1), is_prime(2**67 - 1), next(n for n in itertools.count(10**18) if is_prime(n)))
print(factor(600851475143), factor(2**32 + 1), factor(360360), factor(1000003 * 999983))


def fibonacci(n):
    def doubling(k):
        if k == 0:
            return 0, 1
        a, b = doubling(k // 2)
        c, d = a * (2 * b - a), a * a + b * b
        return (d, c + d) if k % 2 else (c, d)

    return doubling(n)[0]


print(fibonacci(10), fibonacci(300), len(str(fibonacci(5000))), sum(map(int, str(fibonacci(1000)))))


def egcd(a, b):
    if b == 0:
        return a, 1, 0
    g, x, y = egcd(b, a % b)
    return g, y, x - a // b * y


def crt(pairs):
    total, modulus = 0, math.prod(m for _, m in pairs)
    for remainder, m in pairs:
        part = modulus // m
        total += remainder * part * pow(part, -1, m)
    return total % modulus


print(egcd(240, 46), crt([(2, 3), (3, 5), (2, 7)]), [n for n in range(1, 500) if sum(d for d in range(1, n) if n % d == 0) == n])


def pi_digits(count):
    """Machin's formula in integer arithmetic."""
    unit = 10 ** (count + 10)

    def arctan_inverse(x):
        total = term = unit // x
        for n in itertools.count(3, 2):
            term //= -x * x
            if term in (0, -1):
                return total
            total += term // n

    return str(4 * (4 * arctan_inverse(5) - arctan_inverse(239)))[: count + 1]


print(pi_digits(60))
p, q, e = 1000000007, 998244353, 65537
n, d = p * q, pow(e, -1, (p - 1) * (q - 1))
message = int.from_bytes(b"isolet!", "big")
print("toy rsa:", pow(message, e, n), pow(pow(message, e, n), d, n).to_bytes(7, "big") if message < n else "too long")
print("digit limit:", sys.get_int_max_str_digits())
try:
    str(10**5000)
except ValueError as error:
    print(type(error).__name__, "for 5001 digits")
print(hex(10**5000)[:12], (7**5000) % 10**12, len(f"{3**8000:x}"))
collatz = max(range(1, 2000), key=lambda n: sum(1 for _ in itertools.takewhile(lambda v: v != 1, itertools.accumulate(itertools.repeat(n), lambda v, _: v // 2 if v % 2 == 0 else 3 * v + 1))))
print("longest collatz below 2000:", collatz, "| digits:", sum(int(c) for c in str(2**1000)), [n for n in range(100, 1000) if n == sum(int(c) ** 3 for c in str(n))])
