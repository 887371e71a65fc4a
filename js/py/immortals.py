"""Finds the objects of an image, which are made immortal: CPython counts no references to them.

Each count is a write, and each page of the image that a session writes to is its own.
"""

import array
import gc
import sys
import types

# What may be running, and ends.
TEMPORARY = (
    types.FrameType,
    types.TracebackType,
    types.GeneratorType,
    types.CoroutineType,
    types.AsyncGeneratorType,
)
AT_ONCE = 4096  # objects; the lists of them leave their traces in the image


def mortals():
    """Iterates over the addresses of all objects that count references, some at a time. They have
    to be immortal when the next ones are asked for.
    """
    gc.collect()
    found = gc.get_objects()
    while found:
        some = found[-AT_ONCE:]
        del found[-AT_ONCE:]
        some = [each for each in some if is_mortal(each)]
        if some:
            yield array.array("I", map(id, some))
            found += filter(is_mortal, gc.get_referents(*some))
            codes = [each for each in some if type(each) is types.CodeType]
            found += filter(is_mortal, (part for code in codes for part in parts_of(code)))


def parts_of(code):
    """What a code object refers to, which it does not tell the collector."""
    return code.co_consts, code.co_names, code.co_name, code.co_qualname, code.co_filename


def is_mortal(value):
    # `isinstance` would ask a proxy for its `__class__`, which may raise, and `in` a metaclass.
    kind = type(value)
    return not sys._is_immortal(value) and all(kind is not each for each in TEMPORARY)
