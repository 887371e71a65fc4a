"""Finds the smallest example that breaks a property."""

import hypothesis
from hypothesis import strategies as st

assert hypothesis.find(st.lists(st.integers()), lambda xs: sum(xs) > 10) == [11]


@hypothesis.given(st.text())
def holds(text):
    assert text[::-1][::-1] == text


holds()
