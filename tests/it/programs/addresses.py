"""Does everything that ctypes can to objects at addresses outside of the memory: all of it raises
or works, and `outcomes` says how often.
"""

import array
import collections
import copy
import ctypes
import hashlib
import itertools
import pickle
import struct
import sys
import zlib
from ctypes import POINTER, c_char, c_char_p, c_int, c_void_p, py_object

OUTSIDE = (0xFFFFFFF0, 0xFFFFFFFF, 0xF0000000)


class Record(ctypes.Structure):
    _fields_ = [
        ("number", c_int),
        ("text", c_char_p),
        ("wide", ctypes.c_wchar_p),
        ("pointer", POINTER(c_int)),
        ("value", py_object),
        ("numbers", c_int * 4),
        ("chars", c_char * 5),
        ("bits", ctypes.c_longlong, 5),
    ]


class Swapped(ctypes.BigEndianStructure):
    _fields_ = [("number", c_int), ("chars", c_char * 5)]


class Either(ctypes.Union):
    _fields_ = [("number", c_int), ("text", c_char_p)]


KINDS = (
    *(c_int, c_char, c_char_p, c_void_p, py_object, ctypes.c_wchar, ctypes.c_wchar_p),
    *(ctypes.c_double, ctypes.c_float, ctypes.c_longlong, ctypes.c_bool, ctypes.c_short),
    *(ctypes.c_longdouble, c_int.__ctype_be__, Record, Swapped, Either, c_int * 3, c_char * 10),
    *(ctypes.c_wchar * 4, Record * 2, c_char_p * 2, POINTER(c_int), POINTER(Record)),
    *(POINTER(POINTER(c_int)), ctypes.CFUNCTYPE(c_int, c_int)),
    ctypes.PYFUNCTYPE(py_object, py_object),
)
MAKERS = (
    lambda kind, address: kind.from_address(address),
    lambda kind, address: ctypes.cast(address, POINTER(kind)),
    lambda kind, address: ctypes.cast(c_void_p(address), kind),
    lambda kind, address: kind.from_buffer(bytearray(struct.pack("<I", address) * 50)),
)
LIBRARY, API = ctypes.CDLL(None), ctypes.pythonapi
Compare = ctypes.CFUNCTYPE(c_int, POINTER(c_int), POINTER(c_int))
ACTIONS = (
    *(repr, str, bytes, bytearray, memoryview, bool, len, hash, int, hex, iter, copy.copy),
    *(pickle.dumps, hashlib.sha256, zlib.crc32, ctypes.addressof, ctypes.sizeof, ctypes.byref),
    *(ctypes.string_at, ctypes.wstring_at, ctypes.pointer),
    *(LIBRARY.abs, LIBRARY.strlen, API.PyLong_AsLong, API.PyLong_FromVoidPtr),
    lambda x: x.value,
    lambda x: x.contents,
    lambda x: x.raw,
    lambda x: x(),
    lambda x: x(5),
    lambda x: x[0],
    lambda x: x[1:5],
    lambda x: x[0:8:2],
    lambda x: list(zip(range(3), x)),
    lambda x: x.__reduce__(),
    lambda x: x.__setstate__(({}, b"abcd")),
    lambda x: x.__init__(1),
    lambda x: x.__init__(),
    lambda x: x.__setitem__(0, 1),
    lambda x: x.__setitem__(0, b"a"),
    lambda x: x.__setitem__(slice(0, 2), b"ab"),
    lambda x: setattr(x, "value", 5),
    lambda x: setattr(x, "value", b"x"),
    lambda x: setattr(x, "value", "x"),
    lambda x: setattr(x, "raw", b"x"),
    lambda x: setattr(x, "contents", c_int(5)),
    lambda x: ctypes.string_at(x, 10),
    lambda x: ctypes.memoryview_at(x, 10)[0],
    lambda x: ctypes.memset(x, 0, 10),
    lambda x: ctypes.memmove(x, b"abc", 3),
    lambda x: ctypes.memmove(ctypes.create_string_buffer(10), x, 3),
    lambda x: ctypes.resize(x, 100),
    lambda x: ctypes.cast(x, py_object).value,
    lambda x: ctypes.cast(x, c_char_p).value,
    lambda x: ctypes.cast(x, POINTER(c_int))[3],
    lambda x: ctypes.pointer(x)[0],
    lambda x: ctypes.pointer(x).contents.value,
    lambda x: type(x)(x),
    lambda x: (type(x) * 2)(x, x),
    lambda x: type(x).from_buffer_copy(x),
    lambda x: type(x).from_buffer(x),
    lambda x: Record(1, x),
    lambda x: memoryview(x).cast("B")[0],
    lambda x: bytes(memoryview(x)),
    lambda x: b"".join([x]),
    lambda x: b"a" + x,
    lambda x: array.array("B", x),
    lambda x: struct.unpack_from("<I", x),
    lambda x: struct.pack_into("<I", x, 0, 5),
    lambda x: open("/tmp/written", "wb").write(x),
    lambda x: open("/dev/zero", "rb", buffering=0).readinto(x),
    lambda x: LIBRARY.qsort(x, 3, 4, Compare(lambda one, other: one[0] - other[0])),
    *(
        lambda x, name=name: getattr(x, name)
        for name, *_ in (*Record._fields_, *Either._fields_, *Swapped._fields_)
    ),
    *(
        lambda x, name=name, value=value: setattr(x, name, value)
        for name, *_ in Record._fields_
        for value in (5, b"x", "x", (1, 2), None)
    ),
)

sys.unraisablehook = lambda _: None  # what callbacks raise
outcomes = collections.Counter()
for kind, make, address in itertools.product(KINDS, MAKERS, OUTSIDE):
    for act in ACTIONS:
        try:
            made = make(kind, address)
            act(made)
            outcomes["done"] += 1
        except Exception as error:
            outcomes[type(error).__name__] += 1
outcomes = dict(outcomes)
