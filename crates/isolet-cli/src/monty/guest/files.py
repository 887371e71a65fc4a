"""Files of the client's mounts: what is not in the guest's own directories, the client is asked
for; what the client does not serve, the guest's own files are used for.

The functions of `os` are wrapped, and `open`: with them, pathlib, shutil, glob and most packages
work. A file is read when it is opened, and written when it is flushed or closed.
"""

import builtins
import errno
import functools
import io
import os
import pathlib
import posixpath
import re

from _monty_session import UNDEFINED, ask_system

own_directories = frozenset(os.listdir("/"))
real = {name: getattr(os, name) for name in dir(os)}
real_open = io.open


def foreign(path):
    """The absolute path of a file that may be the client's, else None."""
    if isinstance(path, int):
        return None
    try:
        text = os.fsdecode(path)
    except TypeError:
        return None
    text = posixpath.normpath(posixpath.join(real["getcwd"](), text))
    return None if not text or text.split("/")[1] in own_directories else text


def install():
    """Puts the wrapped functions in place."""
    for name, ask in WRAPPED.items():
        setattr(os, name, wrap(real[name], ask))
    os.scandir = scandir
    os.chdir = chdir
    os.rename = os.replace = wrap(real["replace"], rename)
    for name in ("exists", "isfile", "isdir"):
        setattr(posixpath, name, wrap_check(getattr(posixpath, name), CHECKS[name]))
    for wrap_path, transfers in ((wrap_read, READS), (wrap_write, WRITES)):
        for name, expected in transfers.items():
            setattr(pathlib.Path, name, wrap_path(getattr(pathlib.Path, name), name, expected))
    builtins.open = io.open = open


def wrap(function, ask):
    def wrapped(path=".", *args, **kwargs):
        where = foreign(path) if not kwargs.get("dir_fd") else None
        if where is not None:
            found = ask(where, *args, **kwargs)
            if found is not UNDEFINED:
                return found
        return function(path, *args, **kwargs)

    wrapped.__name__ = wrapped.__qualname__ = function.__name__
    wrapped.__doc__ = function.__doc__
    return wrapped


# What Monty asks by a name of its own, before the parts that it consists of here: clients answer
# what they know.
CHECKS = {"exists": "exists", "isfile": "is_file", "isdir": "is_dir"}
READS = {"read_text": str, "read_bytes": bytes}
WRITES = {"write_text": str, "write_bytes": bytes}


def wrap_check(function, kind):
    def check(path):
        where = foreign(path)
        found = UNDEFINED
        if where is not None and where != "/":
            found = ask_system(kind, where, expected=bool)
        return function(path) if found is UNDEFINED else found

    return functools.update_wrapper(check, function)


def wrap_read(function, kind, expected):
    def read(self, *args, **kwargs):
        # A client reads UTF-8: what else is wanted, `open` does.
        where = None if args or kwargs else foreign(self)
        found = UNDEFINED if where is None else ask_system(kind, where, expected=expected)
        if found is UNDEFINED:
            return function(self, *args, **kwargs)
        return re.sub("\r\n?", "\n", found) if kind == "read_text" else found

    return functools.update_wrapper(read, function)


def wrap_write(function, kind, wanted):
    def write(self, data, *args, **kwargs):
        is_plain = isinstance(data, wanted) and not args and not kwargs
        where = foreign(self) if is_plain and is_writable(data) else None
        found = UNDEFINED if where is None else ask_system(kind, where, data, expected=int)
        return function(self, data, *args, **kwargs) if found is UNDEFINED else found

    return functools.update_wrapper(write, function)


def is_writable(data):
    """Whether all characters of a text are some."""
    return isinstance(data, bytes) or not re.search("[\ud800-\udfff]", data)


def stat(path, **options):
    found = UNDEFINED if path == "/" else ask_system("stat", path, expected=tuple)
    return UNDEFINED if found is UNDEFINED or len(found) < 10 else os.stat_result(found[:10])


def access(path, mode, **options):
    try:
        return UNDEFINED if stat(path) is UNDEFINED else True
    except OSError:
        return False


def change(path, *values, **options):
    """What Monty's files do not have, such as a mode or a time: nothing happens."""
    return UNDEFINED if stat(path) is UNDEFINED else None


def listdir(path):
    found = ask_system("iterdir", path, expected=(list, tuple))
    return UNDEFINED if found is UNDEFINED else [posixpath.basename(str(item)) for item in found]


def mkdir(path, mode=0o777, **options):
    return ask_system("mkdir", path)


def remove(path, **options):
    return ask_system("unlink", path)


def rmdir(path, **options):
    return ask_system("rmdir", path)


def rename(source, target, **options):
    where = foreign(target)
    if where is None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), source, None, os.fsdecode(target))
    return ask_system("rename", source, where)


WRAPPED = {
    "stat": stat,
    "lstat": stat,
    "access": access,
    "chmod": change,
    "utime": change,
    "listdir": listdir,
    "mkdir": mkdir,
    "remove": remove,
    "unlink": remove,
    "rmdir": rmdir,
}


class Entry:
    """An entry of a directory of the client's, as `os.scandir` has them."""

    def __init__(self, directory, name):
        self.name = name
        self.path = posixpath.join(directory, name)
        self._kind = None

    def stat(self, *, follow_symlinks=True):
        if self._kind is None:
            self._kind = os.stat(self.path)
        return self._kind

    def is_dir(self, *, follow_symlinks=True):
        return self.stat().st_mode & 0o170000 == 0o040000

    def is_file(self, *, follow_symlinks=True):
        return self.stat().st_mode & 0o170000 == 0o100000

    def is_symlink(self):
        return False

    is_junction = is_symlink

    def inode(self):
        return self.stat().st_ino

    def __fspath__(self):
        return self.path

    def __repr__(self):
        return f"<DirEntry {self.name!r}>"


class Entries:
    """What `os.scandir` returns of a directory of the client's."""

    def __init__(self, entries):
        self._entries = iter(entries)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._entries)

    def close(self):
        self._entries = iter(())

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


def scandir(path="."):
    where = foreign(path)
    names = UNDEFINED if where is None else listdir(where)
    if names is UNDEFINED:
        return real["scandir"](path)
    shown = os.fsdecode(path)
    return Entries([Entry(shown, name) for name in names])


def chdir(path):
    where = foreign(path)
    if where is None or where == "/":
        real["chdir"](path)
        return
    if not posixpath.isdir(where):
        os.listdir(where)  # raises what is wrong with it
    enter(where)


def enter(path):
    """Makes a directory the current one, without a question to the client: the guest has one of
    its own for each, so that relative paths mean what they should. The client's files are not in
    it.
    """
    for parent in [path, *parents(path)][::-1]:
        if not is_own_directory(parent):
            real["mkdir"](parent)
    real["chdir"](path)


def parents(path):
    while (path := posixpath.dirname(path)) != "/":
        yield path


def is_own_directory(path):
    try:
        return real["stat"](path).st_mode & 0o170000 == 0o040000
    except OSError:
        return False


class HostFile(io.BytesIO):
    """A file of the client's."""

    def __init__(self, path, mode, contents):
        super().__init__(contents)
        self.name, self.mode = path, mode
        self._appends = "a" in mode
        self._sent = len(contents)
        self._is_changed = False

    def readable(self):
        return "r" in self.mode or "+" in self.mode

    def writable(self):
        return self.mode != "rb"

    def read(self, size=-1):
        self._check(self.readable(), "read")
        return super().read(size)

    def write(self, data):
        self._check(self.writable(), "writ")
        if self._appends:
            self.seek(0, io.SEEK_END)
        self._is_changed = True
        return super().write(data)

    def truncate(self, size=None):
        self._check(self.writable(), "writ")
        self._is_changed, self._appends = True, False
        return super().truncate(size)

    def flush(self):
        if self._is_changed and not self.closed:
            self._is_changed = False
            contents = self.getvalue()
            if self._appends:
                ask_system("append_bytes", self.name, contents[self._sent :])
            else:
                ask_system("write_bytes", self.name, contents)
            self._sent = len(contents)

    def close(self):
        if not self.closed:
            try:
                self.flush()
            finally:
                super().close()

    def __del__(self):
        self.close()

    def _check(self, is_possible, what):
        if self.closed:
            raise ValueError("I/O operation on closed file.")
        if not is_possible:
            raise io.UnsupportedOperation(f"not {what}able")


def open(
    file,
    mode="r",
    buffering=-1,
    encoding=None,
    errors=None,
    newline=None,
    closefd=True,
    opener=None,
):
    where = foreign(file) if opener is None and isinstance(mode, str) else None
    opened = None if where is None else open_host(where, mode)
    if opened is None:
        return real_open(file, mode, buffering, encoding, errors, newline, closefd, opener)
    if "b" in mode:
        return opened
    encoding = io.text_encoding(encoding)
    text = io.TextIOWrapper(opened, encoding, errors, newline, line_buffering=buffering == 1)
    text.mode = mode
    return text


open.__doc__ = real_open.__doc__


def open_host(path, mode):
    """The client's file as bytes; None if the client does not serve it."""
    kind = "".join(sorted(set(mode) - {"b", "t"}))
    if kind not in ("r", "w", "a", "x", "+r", "+w", "+a", "+x"):
        return None  # `io.open` says what is wrong with it
    letter, plus = kind.strip("+"), "+" * ("+" in kind)
    if letter == "x":
        if os.access(path, os.F_OK):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        letter = "w"
    if ask_system("open", path, f"{letter}b{plus}", expected=tuple) is UNDEFINED:
        return None
    contents = b""
    if letter == "r" or (letter == "a" and plus):
        contents = ask_system("read_bytes", path, expected=bytes)
        if contents is UNDEFINED:
            contents = ask_system("read_text", path, expected=str)
        if contents is UNDEFINED:
            return None
        contents = contents.encode() if isinstance(contents, str) else contents
    file = HostFile(path, f"{letter}b{plus}", contents)
    if letter == "a":
        file.seek(0, io.SEEK_END)
    return file
