"""Inverts a matrix and finds the frequency of a signal."""

import numpy as np

a = np.random.default_rng(7).standard_normal((50, 50))
assert np.allclose(a @ np.linalg.inv(a), np.eye(50))
signal = np.sin(2 * np.pi * 5 * np.arange(1024) / 1024)
assert np.argmax(np.abs(np.fft.rfft(signal))) == 5
