"""Default integers of 64 bits in numpy, whose modules the host changes so; indices have 32 bits.

Some code of packages takes the one for the other. It is changed when it is imported.
"""

import contextlib
import sys
import types

NARROW = """numpy {} has default integers of 32 bits in this build, which isolet cannot change: \
sums, products and powers above 2147483647 are wrong, without a message. Make arrays with \
dtype="int64"."""
MAKERS = ("array", "asarray", "arange", "empty", "full", "ones", "zeros")

has_begun = False  # whether there is a session that can be told
is_untold = False


def install(patches):
    """Notes what is changed when it is imported."""
    patches["numpy"] = look_at
    patches["pandas.core.internals.managers"] = for_wide_integers(patch_pandas)
    patches["scipy.special._ufuncs"] = for_wide_integers(patch_special)
    patches["scipy.signal._peak_finding"] = for_wide_integers(patch_peaks)
    patches["sklearn.utils._random"] = for_wide_integers(patch_samples)


def for_wide_integers(patch):
    """Leaves modules alone that are not as expected, and those with a numpy that is not changed."""

    def patched(module):
        if not is_narrow():
            with contextlib.suppress(AttributeError):
                patch(module)

    return patched


def is_narrow():
    """Asks numpy for default integers that it makes in several ways."""
    numpy = sys.modules["numpy"]
    made = [numpy.array([1]), numpy.arange(1), numpy.ones(1, "int8").sum(), numpy.bincount([0])]
    return min(numpy.dtype(int).itemsize, *(each.itemsize for each in made)) < 8


def look_at(_numpy):
    """Notes a build of numpy that the host does not change."""
    global is_untold
    is_untold = is_narrow()
    if has_begun and is_untold:
        tell()


def begin():
    global has_begun
    has_begun = True


def tell():
    """Says once in a session what its numpy gets wrong."""
    global is_untold
    is_untold = False
    text = NARROW.format(sys.modules["numpy"].__version__)
    with contextlib.suppress(Exception):  # what a program has put there
        print(f"warning: {text}", file=sys.stderr)


def patch_pandas(managers):
    """Where columns are, is kept as indices; pandas puts Python's integers among them."""
    import numpy

    insert = managers.BlockManager._insert_update_blklocs_and_blknos

    def _insert_update_blklocs_and_blknos(self, loc):
        insert(self, loc)
        self._blklocs = self._blklocs.astype(numpy.intp, copy=False)
        self._blknos = self._blknos.astype(numpy.intp, copy=False)

    managers.BlockManager._insert_update_blklocs_and_blknos = _insert_update_blklocs_and_blknos


def patch_special(ufuncs):
    """Orders and degrees are C's `long`. Functions without another form refuse default integers,
    others would compute with floats, which differ in the last digits.
    """
    import numpy

    for name, value in list(vars(ufuncs).items()):
        if not isinstance(value, numpy.ufunc):
            continue
        if any("l" in form.split("->")[0] for form in value.types):
            setattr(ufuncs, name, OfLongs(value))


class OfLongs:
    """A ufunc that gets default integers as C's `long`, if they fit."""

    def __init__(self, ufunc):
        self._ufunc = ufunc
        self.__doc__ = ufunc.__doc__

    def __call__(self, *arguments, **named):
        return self._ufunc(*map(as_long, arguments), **named)

    def __getattr__(self, name):
        return getattr(self._ufunc, name)

    def __reduce__(self):
        return self._ufunc.__reduce__()

    def __repr__(self):
        return repr(self._ufunc)


def as_long(value):
    import numpy

    if type(value) is bool or getattr(value, "dtype", numpy.int64) != numpy.int64:
        return value
    if type(value) is int or isinstance(value, (list, tuple, numpy.ndarray, numpy.int64)):
        array = numpy.asarray(value)
        if array.dtype == numpy.int64:
            with contextlib.suppress(ValueError):  # it does not fit
                return array.astype("l", casting="same_value")
    return value


def patch_peaks(peak_finding):
    """The peaks that a program gives are indices, which no array is too large for."""
    import numpy

    expected = peak_finding._arg_peaks_as_expected

    def _arg_peaks_as_expected(value):
        value = numpy.asarray(value)
        if value.dtype == numpy.int64:
            value = value.astype(numpy.intp, casting="same_value")
        return expected(value)

    peak_finding._arg_peaks_as_expected = _arg_peaks_as_expected


def patch_samples(samples):
    """Samples are C's `long` in its compiled code, which makes arrays of `int` for them."""
    samples.np = IndexNumpy()


class IndexNumpy(types.ModuleType):
    """numpy for compiled code that means its indices by `int`."""

    def __init__(self):
        import numpy

        super().__init__("numpy")
        for name in MAKERS:
            setattr(self, name, of_indices(getattr(numpy, name), numpy.intp))

    def __getattr__(self, name):
        return getattr(sys.modules["numpy"], name)


def of_indices(make, intp):
    def made(*arguments, **named):
        if named.get("dtype") is int:
            named["dtype"] = intp
        return make(*arguments, **named)

    return made
