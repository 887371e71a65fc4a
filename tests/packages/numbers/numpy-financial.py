"""Computes payments of a loan and a rate of return."""

import numpy_financial as npf

assert round(npf.pmt(0.075 / 12, 12 * 15, 200_000), 2) == -1854.02
assert round(npf.irr([-100, 39, 59, 55, 20]), 5) == 0.28095
assert round(npf.npv(0.1, [-100, 60, 60]), 2) == 4.13
