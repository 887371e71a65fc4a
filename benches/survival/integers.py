# Numbers that take long, in C code that checks for nothing.

# %% ten to the power of ten to the power of eight
10**10**8

# %% the factorial of ten million
import math
math.factorial(10**7)

# %% a product of two numbers of 100 million bits
x = (1 << 100_000_000) - 1
x * x

# %% the decimal digits of a large number
import sys
sys.set_int_max_str_digits(0)
str(1 << 40_000_000)

# %% a large number from its digits
import sys
sys.set_int_max_str_digits(0)
int("7" * 20_000_000)

# %% a power modulo a large number
x = (1 << 400_000) - 1
pow(3, x, x - 2)

# %% the greatest common divisor of large numbers
import math
a, b = 1, 1
for i in range(1_000_000):
    a, b = a + b, a
math.gcd(a, b)

# %% a shift by a large number
1 << (1 << 40)

# %% a square root of a large number
import math
math.isqrt((1 << 80_000_000) - 1)

# %% the sum of a large range
sum(range(10**10))

# %% a number of combinations
import math
math.comb(4_000_000, 2_000_000)

# %% a decimal with a large exponent
from decimal import Decimal, getcontext
getcontext().prec = 10**7
Decimal(2) ** Decimal("0.5")

# %% a fraction that grows
from fractions import Fraction
x = Fraction(1)
for i in range(1, 10**7):
    x += Fraction(1, i)
