"""Reads the memory of its process."""

import psutil

assert psutil.Process().memory_info().rss > 0
