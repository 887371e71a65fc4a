"""A regression.

Fits the price of flats with scikit-learn, checks the fit on flats it has not seen, and computes
standard errors with numpy.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import stats
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

df = pd.read_csv("flats.csv")
print(df.describe().round(1).to_string())

X, y = df.drop(columns="price_eur"), df["price_eur"]
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0)
encode = make_column_transformer(
    (OneHotEncoder(drop="if_binary"), ["balcony"]), remainder="passthrough"
)
model = make_pipeline(encode, LinearRegression()).fit(X_train, y_train)
predicted = model.predict(X_test)
scores = cross_val_score(model, X, y, cv=5)
print()
print(f"test R2 {r2_score(y_test, predicted):.3f}, "
      f"mean error {mean_absolute_error(y_test, predicted):,.0f} EUR")
print(f"cross-validated R2 {scores.mean():.3f} +- {scores.std():.3f}")

# Ordinary least squares on all flats, with standard errors.
A = np.column_stack([np.ones(len(df)), X.assign(balcony=X["balcony"] == "yes").astype(float)])
coef, *_ = np.linalg.lstsq(A, y.to_numpy(float), rcond=None)
residuals = y - A @ coef
freedom = len(df) - A.shape[1]
error = np.sqrt(np.diag(np.linalg.inv(A.T @ A)) * (residuals @ residuals) / freedom)
table = pd.DataFrame({"coef": coef, "std_err": error}, index=["intercept", *X.columns])
table["t"] = table["coef"] / table["std_err"]
table["p"] = 2 * stats.t.sf(table["t"].abs(), freedom)
print()
print(table.round({"coef": 1, "std_err": 1, "t": 2, "p": 4}))
print(f"residuals: Shapiro-Wilk p = {stats.shapiro(residuals).pvalue:.3f}")

fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3))
left.scatter(y_test / 1000, predicted / 1000, s=12)
ends = [y_test.min() / 1000, y_test.max() / 1000]
left.plot(ends, ends, color="tab:red", linewidth=1)
left.set(title="Test flats", xlabel="price in 1000 EUR", ylabel="predicted")
right.hist(residuals / 1000, bins=20, density=True, color="0.8", edgecolor="white")
x = np.linspace(-80, 80, 200)
right.plot(x, stats.norm.pdf(x, 0, residuals.std(ddof=A.shape[1]) / 1000), color="tab:red")
right.set(title="Residuals", xlabel="1000 EUR")
fig.tight_layout()
plt.show()
