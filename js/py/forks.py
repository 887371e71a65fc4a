"""Runs what programs have registered with `os.register_at_fork` when the session is forked.

CPython keeps these functions where Python cannot reach them, so they are noted as they come.
"""

import os
import posix
import random
import sys

MOMENTS = ("before", "after_in_parent", "after_in_child")
# What a copy has too, and these would end: threads, which are suspended stacks, and tasks.
KEPT = {("threading", "_after_fork"), ("asyncio.events", "on_fork")}

hooks = {moment: [] for moment in MOMENTS}
register = os.register_at_fork


def register_at_fork(*, before=None, after_in_parent=None, after_in_child=None):
    """Register callables to be called when forking a new process.

    before
      A callable to be called in the parent before the fork() syscall.
    after_in_child
      A callable to be called in the child after fork().
    after_in_parent
      A callable to be called in the parent after fork().

    'before' callbacks are called in reverse order.
    'after_in_child' and 'after_in_parent' callbacks are called in order.
    """
    given = {
        moment: function
        for moment, function in zip(MOMENTS, (before, after_in_parent, after_in_child))
        if function is not None
    }
    register(**given)  # refuses what is no function
    for moment, function in given.items():
        note(moment, function)


def note(moment, function):
    if name_of(function) not in KEPT:
        hooks[moment].append(function)


def name_of(function):
    return getattr(function, "__module__", None), getattr(function, "__name__", None)


def install():
    """Notes what comes from now on. Of what was imported before, a copy needs only new seeds."""
    note("after_in_child", random.seed)
    for module in (os, posix):
        module.register_at_fork = register_at_fork


def run(moment):
    """Calls the functions of a moment. As in CPython, one that fails is reported and no more."""
    functions = list(hooks[moment])
    if moment == "before":
        functions.reverse()
    for function in functions:
        try:
            function()
        except Exception as error:
            sys.excepthook(type(error), error, error.__traceback__)
    if moment == "after_in_child" and "tempfile" in sys.modules:
        sys.modules["tempfile"]._name_sequence = None  # it knows a copy by the process's number
