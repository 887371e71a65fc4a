"""Invents examples of a rare class."""

import numpy as np
from imblearn.over_sampling import SMOTE

x = np.random.default_rng(0).normal(size=(60, 2))
y = np.array([0] * 50 + [1] * 10)
more, labels = SMOTE(random_state=0).fit_resample(x, y)
assert more.shape == (100, 2) and labels.sum() == 50
