"""Solves constraints."""

from z3 import Ints, Solver, sat

x, y = Ints("x y")
solver = Solver()
solver.add(x + y == 10, x - y == 4)
assert solver.check() == sat and solver.model()[x].as_long() == 7
