"""Computes pi and a zero of the zeta function to 50 digits."""

from mpmath import mp

mp.dps = 50
assert str(+mp.pi).startswith("3.14159265358979323846264338327950288419716939937")
assert abs(mp.zetazero(1).imag - 14.134725141734695) < 1e-12
