"""Matrices that numpy cannot invert, decompose or solve for. numpy learns of them from the status
of floating-point arithmetic, which WebAssembly does not have, and would return numbers that are
none.
"""

MODULE = "numpy.linalg._linalg"
INVALID = 8  # the status of an invalid operation


def install(patches):
    patches[MODULE] = patch


def patch(module):
    module._umath_linalg = Checked(module._umath_linalg)


class Checked:
    """numpy's functions in C, which say by NaN that they have failed."""

    def __init__(self, plain):
        self.plain = plain

    def __getattr__(self, name):
        value = getattr(self.plain, name)
        if callable(value):
            value = checked(value)
            setattr(self, name, value)
        return value


def checked(function):
    import numpy

    def call(*given, **named):
        found = function(*given, **named)
        first = found[0] if isinstance(found, tuple) else found  # another may be NaN by right
        if numpy.isnan(first).any():
            settings, handler = numpy.geterr(), numpy.geterrcall()
            is_asked = settings["invalid"] == "call" and handler is not None
            if is_asked and all(numpy.isfinite(one).all() for one in given):
                handler("invalid value", INVALID)
        return found

    return call
