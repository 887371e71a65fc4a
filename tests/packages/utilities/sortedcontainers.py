"""Keeps a list sorted."""

from sortedcontainers import SortedDict, SortedList

numbers = SortedList([3, 1, 2])
numbers.add(0)
assert numbers == [0, 1, 2, 3] and numbers.bisect_left(2) == 2
assert SortedDict(b=1, a=2).peekitem(0) == ("a", 2)
