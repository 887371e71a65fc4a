"""What fails in ROOT, with the numbers and messages of it; and all numbers."""

import errno
import os
import pathlib
import shutil
import socket
import stat
import tempfile


def attempt(name, action, message=True):
    try:
        action()
    except OSError as error:
        known = errno.errorcode[error.errno]
        text = str(error) if message else f"[Errno {error.errno}]"
        print(name, type(error).__name__, known, text, error.errno == getattr(errno, known))
        assert not message or error.strerror == os.strerror(error.errno)
    else:
        print(name, "did not fail")


os.makedirs(f"{ROOT}/full/inner")
with open(f"{ROOT}/file", "w") as file:
    file.write("text")
os.symlink("loop", f"{ROOT}/loop")
readable = os.open(f"{ROOT}/file", os.O_RDONLY)
writable = os.open(f"{ROOT}/file", os.O_WRONLY)
attempt("missing", lambda: open(f"{ROOT}/none"))
attempt("missing directory", lambda: open(f"{ROOT}/none/x", "w"))
attempt("directory", lambda: open(f"{ROOT}/full", "w"))
attempt("beneath a file", lambda: open(f"{ROOT}/file/x"))
attempt("exclusive", lambda: open(f"{ROOT}/file", "x"))
attempt("mkdir", lambda: os.mkdir(f"{ROOT}/full"))
attempt("mkdir missing", lambda: os.mkdir(f"{ROOT}/none/none"))
attempt("rmdir", lambda: os.rmdir(f"{ROOT}/full"))
attempt("rmdir file", lambda: os.rmdir(f"{ROOT}/file"))
attempt("unlink", lambda: os.unlink(f"{ROOT}/none"))
attempt("listdir", lambda: os.listdir(f"{ROOT}/none"))
attempt("listdir file", lambda: os.listdir(f"{ROOT}/file"))
attempt("stat", lambda: os.stat(f"{ROOT}/none"))
attempt("rename", lambda: os.rename(f"{ROOT}/none", f"{ROOT}/other"))
attempt("rename over", lambda: os.rename(f"{ROOT}/full/inner", f"{ROOT}/full"))
attempt("rename beneath", lambda: os.rename(f"{ROOT}/full", f"{ROOT}/full/inner/x"))
attempt("readlink", lambda: os.readlink(f"{ROOT}/file"))
attempt("symlink", lambda: os.symlink("x", f"{ROOT}/file"))
attempt("loop", lambda: open(f"{ROOT}/loop"), message=False)
attempt("closed", lambda: os.close(99))
attempt("read", lambda: os.read(writable, 1))
attempt("write", lambda: os.write(readable, b"x"))
attempt("seek", lambda: os.lseek(readable, -1, os.SEEK_SET))
attempt("rmtree", lambda: shutil.rmtree(f"{ROOT}/none"))
attempt("pathlib", lambda: pathlib.Path(ROOT, "none").read_text())
attempt("temporary", lambda: tempfile.mkdtemp(dir=f"{ROOT}/none"), message=False)
print(pathlib.Path(ROOT, "none").exists(), pathlib.Path(ROOT, "loop").exists(), pathlib.Path(ROOT, "file/x").exists())
print(stat.S_ISREG(pathlib.Path(ROOT, "file").stat().st_mode), os.path.exists(f"{ROOT}/none"))
os.makedirs(f"{ROOT}/full/inner", exist_ok=True)
pathlib.Path(ROOT, "full").mkdir(exist_ok=True)
pathlib.Path(ROOT, "none").unlink(missing_ok=True)
shutil.rmtree(f"{ROOT}/none", ignore_errors=True)

print(socket.EAGAIN == errno.EAGAIN, socket.EBADF == errno.EBADF, sorted(socket._blocking_errnos))
for number in range(133):
    print(number, errno.errorcode.get(number), type(OSError(number, "text")).__name__, OSError(number, "text"))
names = {name: number for name, number in vars(errno).items() if name.startswith("E")}
names.pop("EHWPOISON", None)
print(sorted(names.items()))
print(repr(OSError(errno.ENOENT, "a", "b")), repr(OSError(2)), os.strerror(errno.EACCES), os.strerror(4000))
