"""Finds a wrong type."""

from mypy import api

out, _, status = api.run(["-c", "x: int = 'a'", "--no-incremental"])
assert status == 1 and "Incompatible types" in out
