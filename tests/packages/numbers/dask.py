"""Computes the sum of a graph of tasks, one after the other."""

import dask

inc = dask.delayed(lambda n: n + 1)
total = dask.delayed(sum)([inc(n) for n in range(10)])
assert total.compute() == 55
