"""What needs BLAS from a shared library, and the large parts of scipy."""

import numpy as np
from scipy import fft, integrate, interpolate, linalg, optimize, signal, sparse, spatial, stats
from scipy.sparse.linalg import spsolve

a = np.random.default_rng(3).standard_normal((60, 60))
lu, pivots = linalg.lu_factor(a)
b = a @ np.ones(60)
assert np.allclose(linalg.lu_solve((lu, pivots), b), 1)
assert np.allclose(linalg.expm(np.zeros((3, 3))), np.eye(3))
found = optimize.minimize(optimize.rosen, [1.3, 0.7, 0.8], method="BFGS")
assert np.allclose(found.x, 1, atol=1e-4)
assert np.isclose(optimize.brentq(lambda x: x**2 - 2, 0, 2), 2**0.5)
assert np.isclose(integrate.quad(np.exp, 0, 1)[0], np.e - 1)
solved = integrate.solve_ivp(lambda t, y: -y, (0, 1), [1.0], rtol=1e-8)
assert np.isclose(solved.y[0, -1], np.exp(-1), atol=1e-6)
assert stats.ttest_ind([1, 2, 3, 4], [2, 3, 4, 5]).pvalue > 0.2
assert np.isclose(stats.norm.cdf(1.96), 0.975, atol=1e-4)
matrix = sparse.diags([[-1.0] * 49, [2.0] * 50, [-1.0] * 49], [-1, 0, 1]).tocsc()
assert np.allclose(matrix @ spsolve(matrix, np.ones(50)), 1)
assert np.isclose(interpolate.CubicSpline([0, 1, 2], [0, 1, 4])(1.5), 2.25)
assert len(signal.find_peaks(np.sin(np.linspace(0, 20, 500)))[0]) == 3
assert np.allclose(fft.ifft(fft.fft(b)), b)
assert spatial.KDTree([[0, 0], [1, 1]]).query([0.9, 0.9])[1] == 1

"solved"
