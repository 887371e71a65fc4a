"""Fits of models of several kinds."""

from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_regression
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

X, y = load_iris(return_X_y=True)
train, test, train_y, test_y = train_test_split(X, y, random_state=0)
model = make_pipeline(StandardScaler(), LogisticRegression())
assert model.fit(train, train_y).score(test, test_y) > 0.9
forest = RandomForestClassifier(20, random_state=0).fit(train, train_y)
assert forest.score(test, test_y) > 0.9
assert cross_val_score(SVC(), X, y, cv=3).mean() > 0.9
assert set(KMeans(3, n_init=3, random_state=0).fit_predict(X)) == {0, 1, 2}
assert PCA(2).fit_transform(X).shape == (150, 2)
features, target = make_regression(200, 5, random_state=0)
assert LinearRegression().fit(features, target).score(features, target) > 0.999

"fitted"
