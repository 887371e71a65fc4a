"""Carries errors of measurement through a computation."""

from uncertainties import ufloat

area = ufloat(2, 0.1) * ufloat(3, 0.2)
assert area.nominal_value == 6 and abs(area.std_dev - 0.5) < 1e-12
assert f"{area:.1f}" == "6.0+/-0.5"
