"""What programs do most with packages that an image has, so that their native code is in it. Runs
once, when the image is made, in an interpreter that nobody else gets. What a package of another
version cannot do is left out.
"""

import contextlib
import io
import sys
import warnings


def numpy_arrays(np):
    table = np.arange(12.0).reshape(3, 4)
    for statistic in (np.sum, np.mean, np.std, np.var, np.min, np.max, np.median, np.cumsum):
        statistic(table), statistic(table, axis=0), statistic(table, axis=1)
    for function in (np.sqrt, np.exp, np.log1p, np.sin, np.cos, np.abs, np.round, np.floor):
        function(table)
    numbers = np.array([3, 1, 2, 2, 7])
    for array in (table, numbers, numbers.astype(np.int32), table.astype(np.float32)):
        array + 1, array - 1, array * 2, array / 3, array // 2, array % 2, array**2, -array
        array > 1, array == 2, array != 2, (array > 1) & (array < 3), array[array > 1]
        array.sum(), array.tolist(), repr(array), str(array), array.copy(), array.argmax()
    np.sort(numbers), np.argsort(numbers), np.unique(numbers, return_counts=True)
    np.where(numbers > 1, numbers, 0), np.concatenate([numbers, numbers]), numbers[[0, 2]]
    np.vstack([numbers, numbers]), np.hstack([numbers, numbers]), np.stack([numbers, numbers])
    np.linspace(0, 1, 5), np.zeros((2, 2)), np.ones(3, dtype=int), np.eye(3), np.full(3, 2.5)
    np.isnan(table).any(), np.allclose(table, table), np.clip(table, 1, 5), np.diff(numbers)
    np.percentile(table, [25, 75]), np.histogram(numbers, bins=3), np.bincount(numbers)
    np.array(["a", "bc"]), np.array([1, None], dtype=object), np.array([True, False]).all()
    np.dot(numbers, numbers), np.outer(numbers, numbers), table @ table.T, np.einsum("ij->i", table)
    np.datetime64("2026-01-01") + np.timedelta64(1, "D"), np.arange(5, dtype=np.int64).mean()
    file = io.BytesIO()
    np.save(file, table)
    file.seek(0)
    np.load(file), np.loadtxt(io.StringIO("1 2\n3 4"))


def numpy_algebra(np):
    square = np.array([[2.0, 1.0], [1.0, 3.0]])
    np.linalg.solve(square, [1.0, 2.0]), np.linalg.inv(square), np.linalg.det(square)
    np.linalg.eigh(square), np.linalg.eig(square), np.linalg.svd(square), np.linalg.norm(square)
    np.polyfit([0, 1, 2], [1, 3, 5], 1), np.fft.fft([1.0, 2.0, 3.0, 4.0]), np.corrcoef(square)


def numpy_random(np):
    generator = np.random.default_rng(0)
    generator.normal(size=5), generator.integers(0, 9, 5), generator.random(5)
    generator.choice([1, 2, 3], 2), generator.permutation(5), generator.uniform(0, 1, 3)
    np.random.seed(0)
    np.random.rand(3), np.random.randn(3), np.random.randint(0, 9, 3), np.random.choice([1, 2], 3)


def frames(pd):
    return pd.DataFrame(
        {
            "name": ["a", "b", "a", "c"],
            "number": [1, 2, 3, 4],
            "value": [1.5, None, 2.5, 4.0],
            "day": pd.date_range("2026-01-01", periods=4),
            "flag": [True, False, True, True],
        }
    )


def pandas_frames(pd):
    table = frames(pd)
    str(table), repr(table), table.to_string(), table.head(2), table.tail(1), table.dtypes
    table.describe(), table.info(buf=io.StringIO()), table.shape, list(table.columns), len(table)
    table["number"].sum(), table.number.mean(), table.value.median(), table.number.max()
    table[table.number > 1], table[["name", "number"]], table.loc[0, "number"], table.iloc[1:3]
    table.loc[table.name == "a", "number"], table.query("number > 2"), table.iloc[0]
    table["double"] = table.number * 2
    table["text"] = table.name.str.upper() + "x"
    table.name.str.contains("a"), table.name.str.len(), table.name.str.split("b")
    table.sort_values("number", ascending=False), table.set_index("name"), table.reset_index()
    table.isna().sum(), table.fillna(0), table.dropna(), table.drop(columns="flag"), table.T
    table.rename(columns={"number": "n"}), table.astype({"number": float}), table.copy()
    table.drop_duplicates("name"), table.name.value_counts(), table.name.unique(), table.nunique()
    table.apply(lambda row: row.number, axis=1), table.number.map(lambda number: number + 1)
    table[["number", "value"]].corr(), table.number.cumsum(), table.number.diff()
    table.number.rank(), table.number.rolling(2).mean(), table.number.shift(1)
    table.value.round(1), table.nlargest(2, "number")
    list(table.itertuples()), list(table.iterrows()), table.to_numpy(), table.values
    pd.Series([1, 2, 3]), pd.Series({"a": 1}), pd.cut(table.number, 2), pd.qcut(table.number, 2)
    table.number.quantile([0.25, 0.75]), table.number.isin([1, 2]), table.number.between(1, 2)


def pandas_groups(pd):
    table = frames(pd)
    groups = table.groupby("name")
    groups.number.sum(), groups.value.mean(), groups.size(), groups.number.agg(["min", "max"])
    str(groups.number.sum()), groups.agg(n=("number", "sum"), m=("value", "mean")), list(groups)
    table.groupby(["name", "flag"])["number"].count(), groups.number.transform("sum")
    pd.merge(table, table[["name", "number"]], on="name"), pd.concat([table, table])
    table.merge(table, on="number", how="left"), table.join(table, rsuffix="_r")
    table.pivot_table(index="name", values="number", aggfunc="sum")
    table.melt(id_vars="name", value_vars=["number"], value_name="of")
    pd.crosstab(table.name, table.flag), pd.get_dummies(table.name)


def pandas_times(pd):
    table = frames(pd)
    pd.to_datetime(["2026-01-01", "2026-02-03"]), table.day.dt.month, table.day.dt.strftime("%Y-%m")
    table.set_index("day").number.resample("2D").sum(), table.day.max() - table.day.min()
    pd.to_numeric(["1", "2.5"]), pd.Timestamp("2026-01-01").isoformat(), pd.Timedelta("1 day")


def pandas_files(pd):
    table = frames(pd)
    text = table.to_csv(index=False)
    pd.read_csv(io.StringIO(text)), pd.read_csv(io.StringIO(text), parse_dates=["day"], nrows=2)
    table.to_dict("records"), table.to_dict(), table.to_json(date_format="iso")
    pd.read_json(io.StringIO(table[["number", "value"]].to_json())), table.number.to_list()
    table.to_html(), table._repr_html_()


def pyplot_figures(plt):
    figure, axes = plt.subplots(2, 2, figsize=(6, 4))
    axes[0][0].plot([1, 2, 3], [1, 4, 9], label="a", marker="o", linestyle="--")
    axes[0][1].bar(["a", "b"], [1, 2])
    axes[1][0].hist([1, 2, 2, 3], bins=3)
    axes[1][1].scatter([1, 2], [3, 4], c=[0.1, 0.9])
    for each in axes.flat:
        each.set_title("title"), each.set_xlabel("x"), each.set_ylabel("y"), each.grid(True)
    axes[0][0].legend()
    figure.tight_layout()
    figure.savefig(io.BytesIO(), format="png")
    plt.close(figure)
    plt.plot([1, 2, 3])
    plt.savefig(io.BytesIO(), format="png")
    plt.close("all")


USES = {
    "numpy": [numpy_arrays, numpy_algebra, numpy_random],
    "pandas": [pandas_frames, pandas_groups, pandas_times, pandas_files],
    "matplotlib.pyplot": [pyplot_figures],
}

for name, uses in USES.items():
    if name in sys.modules:
        for use in uses:
            with contextlib.suppress(Exception), warnings.catch_warnings(action="ignore"):
                use(sys.modules[name])
