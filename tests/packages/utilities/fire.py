"""Runs a function as a command."""

import fire


def add(a, b=1):
    return a + b


assert fire.Fire(add, ["2", "--b=3"], serialize=lambda result: "") == 5
