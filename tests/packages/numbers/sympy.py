"""Differentiates, integrates and solves."""

from sympy import Eq, diff, integrate, oo, pi, solve, sqrt, symbols, sin, exp

x = symbols("x")
assert str(diff(x * sin(x), x)) == "x*cos(x) + sin(x)"
assert integrate(exp(-(x**2)), (x, -oo, oo)) == sqrt(pi)
assert solve(Eq(x**2, 2), x) == [-sqrt(2), sqrt(2)]
