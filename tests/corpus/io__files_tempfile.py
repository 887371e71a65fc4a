"""Files in a temporary directory: open modes, seek and append, pathlib, shutil, os walking, globs, errors, shelve-free stores."""
import contextlib
import errno
import filecmp
import fileinput
import fnmatch
import glob
import io
import json
import linecache
import os
import shutil
import stat
import tempfile
from pathlib import Path, PurePosixPath, PureWindowsPath

start = os.getcwd()
with tempfile.TemporaryDirectory(prefix="corpus-") as name:
    base = Path(name)
    file = base / "notes.txt"
    print(file.write_text("one\ntwo\nthree\n", encoding="utf-8"), file.read_text().splitlines(), file.exists(), file.is_file(), file.stat().st_size, file.name, file.suffix, file.stem, file.parent == base)
    with open(file, "a", encoding="utf-8", newline="\n") as handle:
        print(handle.write("vier ü\n"), handle.mode, handle.encoding, handle.closed)
    with open(file, "r+b") as handle:
        handle.seek(4)
        handle.write(b"TWO")
        print(handle.tell(), handle.read(3), handle.seek(-8, os.SEEK_END), handle.read())
    with open(file, encoding="utf-8") as handle:
        print([line.rstrip() for line in handle], handle.read())
    with open(file, "rb", buffering=0) as handle:
        print(type(handle).__name__, handle.readline(), list(handle)[-1])
    with contextlib.suppress(FileExistsError), open(file, "x"):
        print("never")
    with open(file, "w+", newline="") as handle:
        handle.write("a\r\nb")
        handle.seek(0)
        print(repr(handle.read()), handle.truncate(2), file.stat().st_size)
    for bad in (lambda: open(base / "none"), lambda: open(base), lambda: open(file).write("x"), lambda: open(file, "q"), lambda: (base / "a" / "b").mkdir(), lambda: os.rmdir(file), lambda: os.listdir(base / "none"), lambda: open("")):
        try:
            bad()
        except (OSError, ValueError) as error:
            print(type(error).__name__, end=" ")
    print()
    try:
        (base / "missing.txt").read_text()
    except FileNotFoundError as error:
        print(Path(error.filename).name, error.errno == errno.ENOENT, isinstance(error, OSError))

    for path in ("src/main.py", "src/lib/util.py", "src/lib/data.json", "docs/read me.md", "docs/.hidden", "empty/"):
        if path.endswith("/"):
            (base / path).mkdir()
        else:
            (base / path).parent.mkdir(parents=True, exist_ok=True)
            (base / path).write_text(f"# {path}\n")

    def listing(root):
        return sorted(p.relative_to(root).as_posix() + ("/" if p.is_dir() else "") for p in root.rglob("*"))

    print(listing(base))
    print(sorted(p.name for p in base.glob("*/*.py")), sorted(p.name for p in base.glob("**/*.py")), sorted(p.name for p in base.iterdir()), [p.name for p in sorted(base.glob("s*"))])
    for folder, folders, files in os.walk(base):
        folders.sort()
        print(Path(folder).relative_to(base).as_posix(), folders, sorted(files))
    with os.scandir(base) as entries:
        print(sorted((e.name, e.is_dir()) for e in entries))
    print(sorted(os.path.basename(p) for p in glob.glob(str(base / "docs" / "*"))), sorted(fnmatch.filter(os.listdir(base / "src" / "lib"), "*.json")), sorted(glob.glob("**/*.py", root_dir=base, recursive=True)))

    shutil.copy(base / "src/main.py", base / "copy.py")
    shutil.copytree(base / "src", base / "mirror", ignore=shutil.ignore_patterns("*.json"))
    (base / "copy.py").rename(base / "docs" / "moved.py")
    shutil.move(base / "docs" / "moved.py", base / "empty")
    os.replace(base / "empty" / "moved.py", base / "final.py")
    print(listing(base / "mirror"), (base / "final.py").read_text().strip(), list((base / "empty").iterdir()), filecmp.cmp(base / "final.py", base / "src/main.py", shallow=False))
    difference = filecmp.dircmp(base / "src", base / "mirror")
    print(difference.common_files, difference.subdirs["lib"].left_only)
    shutil.rmtree(base / "mirror")
    (base / "final.py").unlink()
    (base / "final.py").unlink(missing_ok=True)
    (base / "empty").rmdir()
    os.makedirs(base / "x/y/z")
    os.removedirs(base / "x/y/z")
    print(listing(base)[:3], (base / "x").exists())
    (base / "keep").touch()
    link = base / "link"
    link.symlink_to(base / "docs")
    print(link.is_symlink(), link.is_dir(), os.path.islink(link), link.resolve().name, sorted(p.name for p in link.iterdir()))
    link.unlink()
    file.chmod(0o600)
    print(stat.filemode(file.stat().st_mode), stat.S_ISREG(file.stat().st_mode), os.path.getsize(file), os.access(file, os.R_OK))
    os.utime(file, (1000, 2000))
    print(file.stat().st_mtime, os.path.samefile(file, base / "docs" / ".." / "notes.txt"))

    os.chdir(base)
    Path("relative.txt").write_text("alpha\nbeta\n")
    print(Path("relative.txt").resolve().parent.samefile(base), Path.cwd().samefile(base), os.path.exists("relative.txt"), linecache.getline("relative.txt", 2).strip())
    with fileinput.input(["relative.txt"]) as lines:
        print([(fileinput.filelineno(), line.strip()) for line in lines])
    with fileinput.input("relative.txt", inplace=True) as lines:
        for line in lines:
            print(line.strip().upper())
    print(Path("relative.txt").read_text().split())
    os.chdir(start)

    with tempfile.NamedTemporaryFile("w+", dir=base, suffix=".json", delete=False) as handle:
        json.dump({"k": [1, 2]}, handle)
    print(json.loads(Path(handle.name).read_text()), Path(handle.name).suffix, Path(handle.name).parent.samefile(base))
    with tempfile.TemporaryFile(dir=base) as handle, tempfile.SpooledTemporaryFile(max_size=10, dir=base) as spooled:
        handle.write(b"binary")
        handle.seek(0)
        spooled.write(b"more than ten bytes")
        spooled.seek(5)
        print(handle.read(), spooled.read(4))
    archive = shutil.make_archive(str(base / "packed"), "zip", base / "src")
    shutil.unpack_archive(archive, base / "unpacked")
    print(Path(archive).name, listing(base / "unpacked"))

    def atomic_write(path, text):
        temporary = path.with_suffix(path.suffix + ".tmp")
        try:
            temporary.write_text(text)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)

    atomic_write(base / "state.json", "[1]")
    atomic_write(base / "state.json", "[1, 2]")
    print((base / "state.json").read_text(), [p.name for p in base.glob("state*")])
    total = sum(p.stat().st_size for p in (base / "src").rglob("*") if p.is_file())
    print("bytes under src:", total)
print("removed:", not base.exists(), os.getcwd() == start)

p = PurePosixPath("/usr/./lib//python3.14/site.tar.gz")
print(p, p.parts, p.suffixes, p.parents[1], p.with_name("x"), p.with_suffix(".zip"), p.relative_to("/usr"), p.is_absolute(), p.match("*.gz"), p / "/abs" / "b", p.joinpath("..", "c"), PurePosixPath("a") < PurePosixPath("b"))
print(PureWindowsPath("C:\\Users\\x.txt").drive, PureWindowsPath("c:/A") == PureWindowsPath("C:\\a"), PureWindowsPath("a\\b").as_posix(), os.path.join("a", "/b", "c"), os.path.splitext("x.tar.gz"), os.path.normpath("a/../b//./c"), os.path.commonpath(["/a/b", "/a/c"]), os.path.relpath("/a/b", "/a/c/d"), os.path.split("/x/y"))
try:
    p.relative_to("/other")
except ValueError as error:
    print(type(error).__name__, io.DEFAULT_BUFFER_SIZE >= 4096)
