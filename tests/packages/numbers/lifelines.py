"""Estimates how long items last when some are still in use."""

from lifelines import KaplanMeierFitter

fit = KaplanMeierFitter().fit([1, 2, 3, 4], event_observed=[1, 1, 0, 1])
assert fit.predict(2) == 0.5 and fit.median_survival_time_ == 2
