"""Compiles a function."""

import numba


@numba.njit
def triangle(n):
    return n * (n + 1) // 2


assert triangle(10) == 55
