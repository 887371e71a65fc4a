"""Compares two groups by a t-test."""

import pingouin as pg

test = pg.ttest([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 9.0])
assert test["T"].iloc[0] < -3
