"""What ctypes lacks: C's own library by its name, and functions whose number of arguments varies.
What would end the interpreter is refused.
"""

import functools

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
)


class Any:
    """An argument that is passed as if nothing were said of it."""

    from_param = staticmethod(lambda value: value)


def patch(ctypes):
    """Changes the module `ctypes`."""
    ctypes._dlopen = opener(ctypes._dlopen)
    ctypes.CDLL.__getitem__ = finder(ctypes.CDLL.__getitem__)


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
