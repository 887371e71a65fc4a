"""Saves a function with what it refers to, and calls it again."""

import dill

base = 10
saved = dill.dumps(lambda n: n + base)
assert dill.loads(saved)(5) == 15
