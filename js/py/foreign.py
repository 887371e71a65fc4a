"""What ctypes lacks: C's own library by its name, and functions whose number of arguments varies.
What would end the interpreter is refused, or raises.
"""

import functools
import struct
import sys
import types

BYTES_HEADER = bytes.__basicsize__ - 1

# C's library, which is part of the interpreter, by the names that it has on Linux.
OWN = ("libc.so.6", "libm.so.6", "libc.so", "libm.so", "libpthread.so.0", "libdl.so.2")
# How many arguments come before those that vary. Those are passed in memory, so they have to be
# told apart.
VARIADIC = {
    **dict.fromkeys(("printf", "scanf", "PyUnicode_FromFormat", "PyBytes_FromFormat"), 1),
    **dict.fromkeys(("fprintf", "sprintf", "dprintf", "sscanf", "fscanf", "open", "fcntl"), 2),
    **dict.fromkeys(("ioctl", "syslog", "PyErr_Format", "PyArg_ParseTuple"), 2),
    **dict.fromkeys(("snprintf", "openat", "PyOS_snprintf", "PyObject_CallMethod"), 3),
    **dict.fromkeys(("Py_BuildValue", "PyTuple_Pack", "PyObject_CallFunctionObjArgs"), 1),
    **dict.fromkeys(("PySys_WriteStdout", "PySys_WriteStderr", "PySys_FormatStdout"), 1),
    **dict.fromkeys(("PyObject_CallFunction", "PyObject_CallMethodObjArgs"), 2),
}
ENDING = (
    *("Py_Finalize", "Py_FinalizeEx", "Py_EndInterpreter", "Py_Main", "Py_BytesMain"),
    *("Py_RunMain", "PyInterpreterState_Clear", "PyInterpreterState_Delete"),
    *("PyThreadState_Clear", "PyThreadState_Delete", "PyThreadState_DeleteCurrent"),
    *("PyThreadState_Swap", "PyEval_SaveThread", "PyEval_ReleaseThread", "PyErr_SetInterruptEx"),
    *("PyGILState_Release", "Py_AddPendingCall"),
)

# Where CPython 3.14 has what of its types, in words: functions by themselves, and in tables of
# functions. All that follow an address are here; their results say so if they have failed.
POINTER, NUMBER = 0, -1
TYPE_WORDS = 38
# repr, call, descr_get, descr_set, init
SLOTS = {11: POINTER, 16: POINTER, 34: POINTER, 35: NUMBER, 37: NUMBER}
TABLES = {
    12: {9: NUMBER},  # of a number: bool
    13: {3: POINTER, 5: NUMBER},  # of a sequence: item, ass_item
    14: {1: POINTER, 2: NUMBER},  # of a mapping: subscript, ass_subscript
    20: {0: NUMBER},  # of a buffer: getbuffer
}
BUFFER, CALL = 20, 16
DEFINITION = 5  # of a descriptor
GETTER, SETTER = 1, 2  # of a definition; a method is where a getter is
DESCRIPTORS = (types.GetSetDescriptorType, types.MethodDescriptorType)
DATA = 64  # words behind a type, in which ctypes describes it
# What `foreign_memory.js` is told of a function.
PLAIN, EXPORTS_BUFFER, RETURNS_OBJECT, CALLS = 0, 1, 2, 3

bridge = None
guarded = None  # what `foreign_memory.js` is told, if ctypes is loaded


def attach(host_bridge):
    """Connects a restored interpreter to its host."""
    global bridge
    bridge = host_bridge


def begin():
    """Has wrong addresses raise, if ctypes is loaded."""
    if guarded is not None and bridge is not None:
        count = len(guarded) // struct.calcsize("III")
        bridge.guard(id(guarded) + BYTES_HEADER, count)


class Any:
    """An argument that is passed as if nothing were said of it."""

    from_param = staticmethod(lambda value: value)


def patch(ctypes):
    """Changes the module `ctypes`."""
    global guarded
    ctypes._dlopen = opener(ctypes._dlopen)
    ctypes.CDLL.__getitem__ = finder(ctypes.CDLL.__getitem__)
    ctypes._memoryview_at = viewer(ctypes)
    cast, py_object = ctypes.cast, ctypes.py_object
    sys.modules["_ctypes"].PyObj_FromPtr = lambda address: cast(address, py_object).value
    found = functions(ctypes)
    guarded = b"".join(struct.pack("IIi", place, *found[place]) for place in found)
    begin()


def functions(ctypes):
    """The functions of ctypes that follow addresses, by their places in WebAssembly's table: each
    with its kind and the result that says that it has failed.
    """
    found = {}

    def words(address, count):
        return (ctypes.c_uint32 * count).from_address(address)

    def note(place, failed, kind=PLAIN):
        if place:
            found.setdefault(place, (kind, failed))

    own = words(id(ctypes.py_object) + type.__basicsize__, DATA)
    at = own[:].index(id(ctypes.py_object._type_))
    note(own[at + 2], POINTER, RETURNS_OBJECT)
    kinds = [ctypes.Structure, ctypes.Union, ctypes._Pointer, ctypes.Array]
    kinds += [ctypes._SimpleCData, ctypes._CFuncPtr, ctypes.Structure.__base__, ctypes.CField]
    kinds += [ctypes.c_char * 1, ctypes.c_wchar * 1]  # which have attributes of their own
    plain = words(id(object), TYPE_WORDS)[:]
    for kind in kinds:
        slots = words(id(kind), TYPE_WORDS)
        for at, failed in SLOTS.items():
            if slots[at] != plain[at]:
                note(slots[at], failed, CALLS if at == CALL else PLAIN)
        for table, entries in TABLES.items():
            for at, failed in entries.items():
                if slots[table]:
                    place = words(slots[table], at + 1)[at]
                    note(place, failed, EXPORTS_BUFFER if table == BUFFER else PLAIN)
        for descriptor in vars(kind).values():
            if type(descriptor) in DESCRIPTORS:
                definition = words(words(id(descriptor), DEFINITION + 1)[DEFINITION], SETTER + 1)
                note(definition[GETTER], POINTER)
                if type(descriptor) is types.GetSetDescriptorType:
                    note(definition[SETTER], NUMBER)
    return found


def viewer(ctypes):
    """`memoryview_at` of memory that is there."""
    plain = ctypes._memoryview_at

    def view(pointer, size, is_readonly):
        view = plain(pointer, size, is_readonly)
        if size > 0:
            address = ctypes.cast(pointer, ctypes.c_void_p).value or 0
            for end in address, address + size - 1:
                ctypes.string_at(end, 1)
        return view

    return view


def opener(plain):
    def dlopen(name, *mode):
        try:
            return plain(None if name in OWN else name, *mode)
        except OSError as error:
            if "XMLHttpRequest" not in str(error):
                raise
            reason = "cannot open shared object file: No such file or directory"
            raise OSError(f"{name}: {reason}") from None

    return dlopen


def finder(plain):
    @functools.wraps(plain)
    def __getitem__(self, name):
        function = plain(self, name)
        if name in VARIADIC:
            function.argtypes = [Any] * VARIADIC[name]
        elif name in ENDING:
            raise NotImplementedError(f"{name}() is not here: it would end the interpreter")
        return function

    return __getitem__
