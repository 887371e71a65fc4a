"""Fits a classifier and finds clusters."""

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

x, x_test, y, y_test = train_test_split(*load_iris(return_X_y=True), random_state=0)
forest = RandomForestClassifier(n_estimators=20, random_state=0).fit(x, y)
assert forest.score(x_test, y_test) > 0.9
assert len(np.unique(KMeans(3, n_init=2, random_state=0).fit_predict(x))) == 3
