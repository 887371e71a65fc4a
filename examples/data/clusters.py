"""Clusters.

Finds groups of shoppers with k-means, with the number of groups that has the best silhouette.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import silhouette_samples, silhouette_score
from sklearn.preprocessing import StandardScaler

df = pd.read_csv("shoppers.csv", index_col="shopper")
X = StandardScaler().fit_transform(df)

scores = {}
for k in range(2, 8):
    labels = KMeans(n_clusters=k, n_init=10, random_state=42).fit_predict(X)
    scores[k] = silhouette_score(X, labels)
    print(f"k = {k}: silhouette {scores[k]:.3f}")
best = max(scores, key=scores.get)

df["cluster"] = KMeans(n_clusters=best, n_init=10, random_state=42).fit_predict(X)
df["silhouette"] = silhouette_samples(X, df["cluster"])
# Name the clusters by what their shoppers spend, as the numbers of k-means mean nothing.
order = df.groupby("cluster")["spend_per_visit"].mean().sort_values().index
df["cluster"] = df["cluster"].map({old: new + 1 for new, old in enumerate(order)})
print()
print(f"best k = {best}")
print(df.groupby("cluster").mean().round(2).assign(size=df["cluster"].value_counts()).to_string())

pca = PCA(n_components=2).fit(X)
print()
print("variance explained by two components:", pca.explained_variance_ratio_.round(3))

fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3), width_ratios=[1, 1.6])
colors = ["tab:red" if k == best else "0.75" for k in scores]
left.bar(list(scores), list(scores.values()), color=colors)
left.set(title="Silhouette", xlabel="clusters")
points = pca.transform(X) * np.sign(pca.components_.sum(axis=1))
for cluster, members in df.reset_index().groupby("cluster"):
    right.scatter(*points[members.index].T, s=10, label=f"{cluster}")
right.set(title="Two principal components")
right.legend(title="cluster", fontsize="small")
fig.tight_layout()
plt.show()
