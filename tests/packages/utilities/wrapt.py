"""Wraps a method and sees its object."""

import wrapt


@wrapt.decorator
def double(wrapped, instance, args, kwargs):
    return 2 * wrapped(*args, **kwargs) + instance.base


class A:
    base = 1

    @double
    def f(self, n):
        return n


assert A().f(3) == 7
