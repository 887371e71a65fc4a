"""Compares versions and reads requirements."""

from packaging.requirements import Requirement
from packaging.version import Version

assert Version("1.10") > Version("1.9rc1")
assert Version("2.5") in Requirement("a[b]>=2,<3; python_version > '3'").specifier
