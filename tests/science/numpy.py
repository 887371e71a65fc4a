"""Linear algebra, transforms, random numbers, files, and C by ctypes."""

import ctypes
import io

import numpy as np

rng = np.random.default_rng(7)
a = rng.standard_normal((120, 120))
assert np.allclose(a @ np.linalg.inv(a), np.eye(120), atol=1e-8)
u, s, vt = np.linalg.svd(a)
assert np.allclose(u @ np.diag(s) @ vt, a)
values, vectors = np.linalg.eigh(a + a.T)
assert np.allclose((a + a.T) @ vectors, vectors * values)
assert np.isclose(np.linalg.det(np.diag([1.0, 2.0, 3.0])), 6)
q, r = np.linalg.qr(a)
assert np.allclose(q @ r, a)

signal = np.sin(2 * np.pi * 5 * np.arange(1024) / 1024)
assert np.argmax(np.abs(np.fft.rfft(signal))) == 5
assert np.allclose(np.fft.irfft(np.fft.rfft(signal)), signal)

assert np.array_equal(np.sort(rng.permutation(10**5)), np.arange(10**5))
assert np.einsum("ij,jk->ik", a, a).shape == (120, 120)
table = np.array([(1, 2.5, "x")], dtype=[("a", "i8"), ("b", "f4"), ("c", "U3")])
assert table["c"][0] == "x"
assert np.datetime64("2026-11-22") - np.datetime64("2026-01-01") == np.timedelta64(325, "D")

file = io.BytesIO()
np.savez_compressed(file, a=a)
file.seek(0)
assert np.array_equal(np.load(file)["a"], a)

array = np.arange(5, dtype=np.float64)
pointer = array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
pointer[0] = 42
assert array[0] == 42
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda x: x + 1)
assert compare(1) == 2

try:
    np.linalg.inv(np.zeros((2, 2)))
except np.linalg.LinAlgError as error:
    assert str(error) == "Singular matrix"

[np.__version__.split(".")[0], float(s.sum() > 0), np.arange(3)]
