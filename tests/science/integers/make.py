"""Writes expected.txt: expressions whose value depends on the default integer, and their values.

Run it with a desktop's Python: python make.py > expected.txt
"""

import random
import warnings

from check import NAMES, value

KNOWN = """
np.arange(1, 100_001).sum()
np.sum(range(100_000))
np.sum([2_000_000_000] * 2)
np.prod([100_000, 100_000])
np.dot([100_000, 3], [100_000, 4])
np.array([[100_000]]) @ np.array([[100_000]])
np.outer([100_000, 2], [100_000, 3])
np.cumsum([2_000_000_000] * 3)
np.cumprod([100_000] * 3)
np.diff([-2_000_000_000, 2_000_000_000])
np.trace(np.full((2, 2), 2_000_000_000))
np.polyval([100_000, 0], 100_000)
np.linalg.matrix_power([[1, 1], [1, 0]], 50)
np.linspace(0, 1e10, 3, dtype=int)
2 ** np.arange(40)[-3:]
((np.array([100_000, 0]) - np.array([0, 100_000])) ** 2).mean()
np.array([50_000]) ** 2
seeded().randint(0, 100_000, 3) ** 2
seeded().randint(0, 10**10, 2)
np.arange(5_000_000_000, 5_000_000_003)
np.full(3, 5_000_000_000)
np.int_(5e9)
np.zeros(2, dtype=int)
np.array([1.7e12]).astype(int)
np.array(["1489687200000"]).astype(int)
np.array([1, 2, 3])
np.array([2_000_000_000] * 3).mean()
np.array([100_000, 1]).var()
np.random.default_rng(0).integers(0, 10**10, 3)
pd.Series([1.7e12]).astype(int)
pd.Series(["1489687200000"]).astype(int)
pd.to_datetime(pd.Series(["2024-01-01"])).astype(int)
pd.read_csv(io.StringIO("ts\\n1700000000000.0")).ts.astype(int)
pd.DataFrame({"a": seeded().randint(0, 100_000, 3)}).pipe(lambda d: d.a * d.a)
pd.Series(np.array([2_000_000_000] * 2)).sum()
pd.Series(np.array([2_000_000_000] * 2)).cumsum()
pd.Series(np.array([100_000] * 3)).prod()
metrics.mean_squared_error(np.array([100_000, 0]), np.array([0, 100_000]))
np.square(50_000)
np.add(2_000_000_000, 2_000_000_000)
np.multiply.reduce(np.array([2**20] * 3, dtype="int32"))
np.array([True, False]).sum()
np.ones(3, dtype="uint8").sum()
np.ones(3, dtype="uint32").prod()
np.bincount([0, 1, 1] * 50_000) ** 2
np.histogram([1] * 100_000, 2)[0] ** 2
np.unique([7] * 100_000, return_counts=True)[1] ** 2
seeded().choice(5, 4)
seeded().permutation(6)
seeded().binomial(10, 0.5, 4)
seeded().multinomial(20, [0.5, 0.5], 2)
seeded().poisson(3, 4)
seeded().geometric(0.1, 4)
""".strip().splitlines()

NUMBERS = (3, 7, 41, 1000, 46_341, 65_536, 99_999, 100_000, 2_000_000_000, 5_000_000_000)
MAKERS = (
    "np.array({numbers})",
    "np.arange({small}, {small} + 4) * {number}",
    "seeded({seed}).randint(0, {number}, 4)",
    "np.full(4, {number})",
    "np.array({numbers}, dtype=float).astype(int)",
    "np.linspace({small}, {number}, 4, dtype=int)",
    "np.array([str(n) for n in {numbers}]).astype(int)",
    "np.array({numbers}, dtype='int32' if max({numbers}) < 2**31 else int)",
    "pd.Series({numbers}).to_numpy()",
    "np.fromiter(range({small}, {small} + 4), dtype=int) * {number}",
    "np.cumsum(np.array({numbers}) > 50)",
    "np.where(np.array({numbers}) > 50, {number}, {small})",
)
USES = (
    "({a}).sum()",
    "({a}).prod()",
    "np.cumsum({a})",
    "({a}) * {number}",
    "({a}) ** 2",
    "({a}) - ({b})",
    "({a}) * ({b}) + {small}",
    "np.dot({a}, {b})",
    "np.outer({a}, {b}).sum()",
    "np.add.accumulate({a})",
    "np.abs(-({a})).max()",
    "np.diff({a})",
    "({a}).reshape(2, 2) @ ({b}).reshape(2, 2)",
    "np.concatenate([{a}, [{number}]]).sum()",
    "np.sort({a})[-2:] + {number}",
    "np.power({a}, {power})",
    "np.left_shift({small}, 30) + ({a})",
    "({a}) // {small}",
    "({a}) % {small} * {number}",
    "np.tensordot({a}, {b}, 1)",
    "np.kron({a}, [{number}, 1])",
    "np.einsum('i,i->', {a}, {b})",
    "pd.Series({a}).cumsum()",
    "pd.DataFrame({{'k': [0, 1, 0, 1], 'v': {a}}}).groupby('k').v.sum()",
    "pd.Series({a}).mul({number})",
    "sparse.csr_matrix(np.array([{a}])).sum()",
    "(sparse.csr_matrix(np.array([{a}])) * {number}).toarray()",
    "metrics.mean_absolute_error({a}, {b})",
    "stats.describe({a}).mean",
    "np.polyval([1, {small}], {a})",
)


def expressions(count):
    """Random ones, the same each time, whose values are within 64 bits or wrap there."""
    rng = random.Random(20261128)

    def maker():
        numbers = rng.choices(NUMBERS, k=4)
        words = {"numbers": numbers, "number": rng.choice(NUMBERS), "small": rng.randint(2, 9)}
        return rng.choice(MAKERS).format(seed=rng.randint(0, 99), **words)

    for _ in range(count):
        words = {"number": rng.choice(NUMBERS), "small": rng.randint(2, 9)}
        yield rng.choice(USES).format(a=maker(), b=maker(), power=rng.randint(2, 5), **words)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for expression in [*KNOWN, *expressions(200)]:
        print(f"{expression} -> {value(eval(expression, NAMES))}")
