"""Finds the lines that ran."""

import coverage

open("part.py", "w").write("def f(x):\n    if x:\n        return 1\n    return 2\n")
with coverage.Coverage(data_file=None).collect() as measured:
    import part

    part.f(1)
assert measured.analysis("part.py")[2] == [4]
