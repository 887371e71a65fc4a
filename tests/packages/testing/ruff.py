"""Formats Python, by a program."""

from ruff.__main__ import find_ruff_bin

assert find_ruff_bin()
