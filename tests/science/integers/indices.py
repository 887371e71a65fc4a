"""Default integers where the packages' compiled code wants indices, which have 32 bits."""

import numpy as np
import pandas as pd
from scipy import ndimage, optimize, signal, spatial
from scipy.sparse import csgraph, csr_matrix
from sklearn import cluster, datasets, ensemble, metrics, model_selection, tree, utils

one, two = np.array([1]), np.array([1, 0])
ten = np.arange(10)
assert ten.dtype == "int64" and np.intp(0).itemsize == 4
assert np.argsort(two).dtype == np.nonzero(two)[0].dtype == np.searchsorted(ten, two).dtype == np.intp
assert ten[np.argsort(-ten)][two].tolist() == [8, 9] and list(range(3))[one[0]] == 1
assert np.bincount(two, minlength=one[0]).tolist() == [1, 1]
assert np.repeat(two, np.array([1, 2])).tolist() == [1, 0, 0]
assert np.add.reduceat(ten, np.array([0, 5])).tolist() == [10, 35]
assert np.choose(two, [[1, 2], [3, 4]]).tolist() == [3, 2]
assert np.take(ten, two).tolist() == [1, 0] and np.partition(ten[::-1], one)[1] == 1
assert np.ravel_multi_index(np.array([[1, 0], [1, 1]]), (2, 2)).tolist() == [3, 1]
assert np.delete(ten, two).size == 8 and np.insert(ten, one, 5)[1] == 5
assert np.take_along_axis(ten, np.argsort(ten), 0)[3] == 3 and np.zeros(two + 1).shape == (2, 1)
try:
    np.repeat(two, np.array([2**33, 1]))
except ValueError:
    pass
else:
    raise AssertionError("a count of 34 bits was cut off")

rng = np.random.RandomState(1)
table = pd.DataFrame({"k": rng.randint(0, 5, 90), "g": rng.choice(list("abc"), 90)})
table["v"] = rng.randint(0, 100_000, 90)
table.insert(0, "first", np.arange(90))
assert table.pop("first").sum() == 4005 and table.shape == (90, 3)
table.insert(1, "middle", np.arange(90))
assert table.drop(columns="middle").columns.tolist() == ["k", "g", "v"]
assert pd.crosstab(table.k, table.g).to_numpy().sum() == 90
keys = table[["k", "g"]].drop_duplicates()
assert table.merge(keys, on=["k", "g"]).shape == (90, 4)
assert table.groupby(["k", "g"]).v.agg(["sum", "count"])["sum"].sum() == table.v.sum()
assert table.groupby(np.arange(90) // 30).v.size().tolist() == [30, 30, 30]
assert table.iloc[np.array([3, 1])].index.tolist() == [3, 1]
assert table.sample(5, random_state=0).shape[0] == 5 and table.v.value_counts().sum() == 90
assert table.pivot_table(index="k", columns="g", values="v", aggfunc="sum").sum().sum() > 0
assert pd.qcut(table.v, 3, labels=False).sum() > 0 and pd.factorize(table.g)[0].max() == 2

graph = csr_matrix(rng.randint(0, 3, (6, 6)))
assert graph[np.array([1, 2])][:, two].shape == (2, 2) and (graph @ graph).sum() > 0
assert csr_matrix((ten, (ten, ten))).tocsc().tocoo().diagonal().sum() == 45
assert csgraph.dijkstra(graph, indices=two).shape == (2, 6)
assert csgraph.connected_components(graph)[0] >= 1
peaks = np.array([0, 5, 0, 6, 0])
assert signal.peak_widths(peaks, np.array([1, 3]))[0].tolist() == [1, 1]
assert signal.peak_prominences(peaks, signal.find_peaks(peaks)[0])[0].tolist() == [5, 6]
assert ndimage.sum_labels(peaks, peaks, index=np.array([5, 6])).tolist() == [5, 6]
assert spatial.cKDTree(rng.rand(9, 2)).query(rng.rand(2, 2), np.array([1, 2]))[1].shape == (2, 2)
assert optimize.linear_sum_assignment(np.eye(3, dtype=int))[0].tolist() == [0, 1, 2]

samples, kinds = datasets.make_classification(90, 6, random_state=0)
train, test = model_selection.train_test_split(np.arange(90), random_state=0, stratify=kinds)
forest = ensemble.RandomForestClassifier(9, random_state=0).fit(samples[train], kinds[train])
assert forest.score(samples[test], kinds[test]) > 0.8
assert tree.DecisionTreeClassifier(random_state=0).fit(samples, kinds).score(samples, kinds) == 1
groups = cluster.KMeans(3, n_init=2, random_state=0).fit_predict(samples)
assert np.bincount(groups).sum() == 90 and cluster.DBSCAN(1.5).fit(samples).labels_.size == 90
assert metrics.confusion_matrix(kinds, 1 - kinds).tolist()[0][0] == 0
assert ensemble.HistGradientBoostingClassifier(max_iter=3).fit(samples, kinds).score(samples, kinds)
for method in ("tracking_selection", "reservoir_sampling", "pool", "auto"):
    assert len(set(utils.random.sample_without_replacement(1000, 9, method=method))) == 9
