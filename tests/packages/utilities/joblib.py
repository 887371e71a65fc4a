"""Maps in threads and keeps results on disk."""

from joblib import Memory, Parallel, delayed

assert Parallel(n_jobs=2, prefer="threads")(delayed(pow)(n, 2) for n in range(4)) == [0, 1, 4, 9]
calls = []


@Memory("cache", verbose=0).cache
def square(n):
    calls.append(n)
    return n * n


assert square(3) == square(3) == 9 and calls == [3]
