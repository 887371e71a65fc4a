"""The end of a program: what it leaves is let go, and its files closed, as when python exits."""

import _io
import atexit
import gc
import io
import sys
import types

import _isolet_threads as threads
import _isolet_tools as tools

BUFFERED = (io.BufferedWriter, io.BufferedRandom)
IN_MEMORY = (io.BytesIO, io.StringIO)
# What the objects of a program may still look for when they are let go.
LOOKED_FOR = (
    *(types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type),
    *(str, bytes, int, float, bool, type(None)),
)
SUSPENDED = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
OTHERS, FILES, LAST = 1, 2, 3  # turns, of which the first is 0
MAX_LOOKED_AT = 10_000  # objects that a variable leads to
LIBRARY = "/lib/"  # where the modules are that are no program's own
STANDARD = ("__stdout__", "__stderr__")

kept = frozenset()  # the names that the namespace has at the beginning


def note(namespace):
    """Notes what a namespace has before a program runs in it."""
    global kept
    kept = frozenset(namespace)


def end(namespace, keeps_variables):
    """Does what python does when a program has ended; `keeps_variables` says that the session goes
    on with them.
    """
    atexit._run_exitfuncs()
    flush_files()  # first, as what follows may be ended by the deadline
    if keeps_variables:
        return
    clear(namespace)
    for name, module in reversed(list(sys.modules.items())):
        if name != "__main__" and is_own(module):
            del sys.modules[name]
            clear(vars(module))
    gc.collect()
    close_files()


def clear(namespace):
    """Lets go of what is in a namespace. Objects that have something left to do come first, so that
    they find the rest still there; then files, and then what all others may look for.
    """
    turns, value = {}, None
    for name, value in namespace.items():
        if name not in kept and not tools.is_function(name, value):
            turns.setdefault(turn(value), []).append(name)
    del value
    for number in range(LAST + 1):
        for name in turns.get(number, ()):
            namespace.pop(name, None)
        if number == 0:
            gc.collect()  # also what is in cycles


def turn(value):
    kind = type(value)
    if kind in LOOKED_FOR or issubclass(kind, (type, types.ModuleType)):
        return LAST
    if issubclass(kind, _io._IOBase):
        return FILES
    return 0 if leads_to_finalizer(value) else OTHERS


def leads_to_finalizer(value):
    """Whether the end of a value calls code of the program."""
    asked, seen = [value], set()
    while asked and len(seen) < MAX_LOOKED_AT:
        value = asked.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        kind = type(value)
        if kind in SUSPENDED or has_finalizer(kind):
            return True
        if kind not in LOOKED_FOR and not issubclass(kind, (type, types.ModuleType, _io._IOBase)):
            asked += gc.get_referents(value)
    return False


def has_finalizer(kind):
    if issubclass(kind, _io._IOBase):
        return False
    mro = type.__getattribute__(kind, "__mro__")
    return any("__del__" in type.__getattribute__(base, "__dict__") for base in mro)


def is_own(module):
    """Whether a module is one of the program's files."""
    if not isinstance(module, types.ModuleType):
        return False
    file = vars(module).get("__file__")
    return type(file) is str and not file.startswith(LIBRARY) and "site-packages" not in file


def flush_files():
    """Writes what is in the buffers of open files."""
    for file in open_files():
        if not isinstance(file, io.TextIOWrapper) or isinstance(file.buffer, BUFFERED):
            attempt(file.flush, file)


def close_files():
    """Closes the files that something still holds, the outermost layer first."""
    for file in sorted(open_files(), key=layer):
        attempt(file.close, file)


def open_files():
    """The files that a program may have written to, without the standard streams."""
    standard = set()
    for name in STANDARD:
        stream = getattr(sys, name, None)
        standard |= {id(stream), id(getattr(stream, "buffer", None))}
    return [one for one in gc.get_objects() if is_written(one) and id(one) not in standard]


def is_written(one):
    kind = type(one)
    if not issubclass(kind, _io._IOBase) or issubclass(kind, IN_MEMORY):
        return False
    try:
        return not one.closed and one.writable()
    except Exception:  # it was detached from its file, or never opened
        return False


def layer(file):
    if isinstance(file, _io._TextIOBase):
        return 0
    if isinstance(file, _io._RawIOBase):
        return 3
    return 2 if isinstance(file, BUFFERED) else 1


def attempt(step, file):
    try:
        step()
    except Exception as error:
        threads.report(error, f"Exception ignored while closing file {shown(file)}")


def shown(file):
    try:
        return repr(file)
    except Exception:
        return f"<{type(file).__name__}>"
