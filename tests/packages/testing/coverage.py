"""Finds the lines that did not run."""

import sys

import coverage

sys.path.append(".")
open("part.py", "w").write("def f(x):\n    if x:\n        return 1\n    return 2\n")
measured = coverage.Coverage(data_file=None, include="part.py")
measured.start()
import part

part.f(1)
measured.stop()
assert measured.analysis("part.py")[2] == [4]
