"""random with seeds and statistics: the same stream everywhere, distributions, sampling, summary measures, a simulation."""
import math
import random
import statistics as st
from fractions import Fraction

rng = random.Random(2024)
print([rng.random() for _ in range(3)], rng.getrandbits(70), [rng.randrange(100) for _ in range(8)], [rng.randint(-3, 3) for _ in range(8)])
print(rng.choice("abcdef"), rng.choices("xyz", weights=[1, 2, 7], k=12), rng.sample(range(1000), 5), rng.sample(["a", "b"], counts=[3, 2], k=4))
deck = [f"{rank}{suit}" for suit in "SH" for rank in "A23"]
rng.shuffle(deck)
print(deck, rng.uniform(1, 2), rng.randbytes(6).hex(), rng.triangular(0, 1, 0.5))
state = rng.getstate()
first = [rng.random() for _ in range(4)]
rng.setstate(state)
print("state restored:", [rng.random() for _ in range(4)] == first, random.Random("text seed").random(), random.Random(b"bytes").randrange(10**9))
random.seed(7)
module_level = [random.random() for _ in range(2)]
random.seed(7)
assert module_level == [random.random(), random.random()] == [*map(lambda r: r.random(), [random.Random(7)] * 2)]
for name, args in (("gauss", (0, 1)), ("normalvariate", (10, 2)), ("expovariate", (1.5,)), ("betavariate", (2, 3)), ("gammavariate", (2, 1)), ("lognormvariate", (0, 1)), ("paretovariate", (3,)), ("weibullvariate", (1, 2)), ("vonmisesvariate", (0, 4))):
    generator = random.Random(99)
    draws = [getattr(generator, name)(*args) for _ in range(400)]
    print(f"{name:16} first {draws[0]:.9f} mean {st.fmean(draws):.6f} spread {st.pstdev(draws):.6f}")
for bad in (lambda: rng.randrange(5, 5), lambda: rng.choice([]), lambda: rng.sample([1], 2), lambda: rng.choices([1, 2], weights=[1])):
    try:
        bad()
    except (ValueError, IndexError) as error:
        print(type(error).__name__, end=" ")
print()

data = [2.75, 1.75, 1.25, 0.25, 0.5, 1.25, 3.5]
whole = [1, 3, 3, 6, 7, 8, 9, 3]
print(st.mean(data), st.fmean(data), st.median(data), st.median_low(whole), st.median_high(whole), st.mode(whole), st.multimode("aabbc"), st.mean([Fraction(1, 3), Fraction(1, 6)]))
print(f"{st.stdev(data):.10f} {st.pstdev(data):.10f} {st.variance(whole)} {st.pvariance(whole)} {st.harmonic_mean([40, 60])} {st.geometric_mean([54, 24, 36]):.9f} {st.fmean([1, 2, 3], weights=[3, 2, 1]):.6f}")
print(st.quantiles(whole, n=4), st.quantiles(range(1, 10), n=5, method="inclusive"), f"{st.median_grouped([1, 2, 2, 3, 4, 4, 4, 5], 1):.4f}")
xs, ys = [1, 2, 3, 4, 5], [2.2, 4.1, 6.2, 7.9, 10.1]
fit = st.linear_regression(xs, ys)
print(f"slope {fit.slope:.6f} intercept {fit.intercept:.6f} r {st.correlation(xs, ys):.8f} cov {st.covariance(xs, ys):.6f}")
normal = st.NormalDist(100, 15)
print(f"{normal.cdf(130):.8f} {normal.pdf(100):.8f} {normal.inv_cdf(0.975):.6f} {normal.zscore(70)} {normal.overlap(st.NormalDist(110, 15)):.6f}", normal + 5, normal * 2, [round(q, 4) for q in normal.quantiles(4)])
samples = [random.Random(3).gauss(5, 2) for _ in range(3)] + [4.0, 6.5]
print(f"{st.NormalDist.from_samples(samples).mean:.6f} {st.NormalDist.from_samples(samples).stdev:.6f}")
for bad in (lambda: st.mean([]), lambda: st.stdev([1]), lambda: st.mode([]), lambda: st.harmonic_mean([-1]), lambda: st.NormalDist(0, -1)):
    try:
        bad()
    except st.StatisticsError as error:
        print(type(error).__name__, end=" ")
print()


def estimate_pi(count, seed):
    generator = random.Random(seed)
    return 4 * sum(math.hypot(generator.random(), generator.random()) < 1 for _ in range(count)) / count


def random_walk(steps, seed):
    generator, position, visited = random.Random(seed), (0, 0), {(0, 0)}
    for _ in range(steps):
        dx, dy = generator.choice([(0, 1), (1, 0), (0, -1), (-1, 0)])
        position = position[0] + dx, position[1] + dy
        visited.add(position)
    return position, len(visited)


def bootstrap(values, rounds, seed):
    generator = random.Random(seed)
    means = sorted(st.fmean(generator.choices(values, k=len(values))) for _ in range(rounds))
    return round(means[int(rounds * 0.025)], 4), round(means[int(rounds * 0.975)], 4)


def reservoir(stream, size, seed):
    generator, kept = random.Random(seed), []
    for index, item in enumerate(stream):
        if index < size:
            kept.append(item)
        elif (slot := generator.randrange(index + 1)) < size:
            kept[slot] = item
    return kept


print(estimate_pi(4000, 1), random_walk(500, 42), bootstrap(data, 200, 5), reservoir(range(1000), 5, 8))
faces = random.Random(0).choices(range(1, 7), k=600)
counts = {face: faces.count(face) for face in range(1, 7)}
print(counts, f"chi2 {sum((c - 100) ** 2 / 100 for c in counts.values()):.4f}")


class Lcg(random.Random):
    """A generator of one's own under the standard methods."""

    def seed(self, value=None, version=2):
        self.value = value or 1

    def random(self):
        self.value = self.value * 1103515245 + 12345 & 0x7FFFFFFF
        return self.value / 2**31


print([round(Lcg(5).random(), 6), Lcg(5).randrange(100), Lcg(9).choice("abc")])
