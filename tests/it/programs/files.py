# What programs do with files in the directory ROOT. It prints the same on every Python.
import mmap, os, pathlib, shutil, sqlite3, tempfile, zipfile


def attempt(function, *args):
    try:
        print(function(*args))
    except OSError as error:
        print(type(error).__name__, str(error.filename or "").replace(ROOT, "ROOT"))


# Reading, writing, seeking, truncating
with open(ROOT + "/a.bin", "wb") as f:
    f.write(b"0123456789")
    f.seek(3)
    f.write(b"XYZ")
    f.flush()
    print(f.tell(), os.path.getsize(ROOT + "/a.bin"))
with open(ROOT + "/a.bin", "r+b") as f:
    f.seek(-2, os.SEEK_END)
    print(f.read())
    f.truncate(5)
with open(ROOT + "/a.bin", "ab") as f:
    f.write(b"++")
    print(f.tell())
print(open(ROOT + "/a.bin", "rb").read())
attempt(open, ROOT + "/a.bin", "x")
attempt(open, ROOT + "/none")
attempt(open, ROOT + "/none/x", "w")
attempt(open, ROOT + "/a.bin/x")
with open(ROOT + "/holes", "wb") as f:
    f.seek(5000)
    f.write(b"end")
print(open(ROOT + "/holes", "rb").read().count(0), os.stat(ROOT + "/holes").st_size)
print(open(ROOT + "/holes", "w+").read())

# Directories
os.makedirs(ROOT + "/d/e/f")
pathlib.Path(ROOT, "d/e/f/g.txt").write_text("hé\n", encoding="utf-8")
print(sorted((r.replace(ROOT, ""), sorted(d), sorted(f)) for r, d, f in os.walk(ROOT)))
print(sorted(str(p).replace(ROOT, "") for p in pathlib.Path(ROOT).rglob("*")))
attempt(os.mkdir, ROOT + "/d")
attempt(os.rmdir, ROOT + "/d")
attempt(os.listdir, ROOT + "/a.bin")
attempt(open, ROOT + "/d")
attempt(os.remove, ROOT + "/none")
attempt(os.rmdir, ROOT + "/a.bin")
with os.scandir(ROOT) as entries:
    print(sorted((e.name, e.is_dir(), e.is_file(), e.is_symlink()) for e in entries))

# Renaming
os.rename(ROOT + "/d/e", ROOT + "/d/E")
print(os.listdir(ROOT + "/d"), open(ROOT + "/d/E/f/g.txt", encoding="utf-8").read())
os.rename(ROOT + "/a.bin", ROOT + "/d/b.bin")
print(os.path.exists(ROOT + "/a.bin"))
open(ROOT + "/c", "w").write("c")
os.replace(ROOT + "/c", ROOT + "/d/b.bin")
print(open(ROOT + "/d/b.bin").read())
attempt(os.rename, ROOT + "/none", ROOT + "/x")
attempt(os.rename, ROOT + "/d/b.bin", ROOT + "/d/E")
os.rename(ROOT + "/d/E", ROOT + "/moved")
os.rename(ROOT + "/moved", ROOT + "/d/E")
os.rename(ROOT + "/d/b.bin", ROOT + "/d/b.bin")

# Links inside
os.symlink("b.bin", ROOT + "/d/link")
print(os.readlink(ROOT + "/d/link"), open(ROOT + "/d/link").read(), os.path.islink(ROOT + "/d/link"))
os.symlink("d", ROOT + "/dirlink")
print(sorted(os.listdir(ROOT + "/dirlink")), open(ROOT + "/dirlink/link").read())
print(os.path.realpath(ROOT + "/dirlink/link") == os.path.realpath(ROOT) + "/d/b.bin")
os.symlink("loop", ROOT + "/loop")
attempt(open, ROOT + "/loop")
os.remove(ROOT + "/loop")
os.remove(ROOT + "/dirlink")
print(os.path.isdir(ROOT + "/d"))

# The working directory
before = os.getcwd()
os.chdir(ROOT + "/d")
print(os.path.relpath(os.getcwd(), os.path.realpath(ROOT)), sorted(os.listdir()), open("b.bin").read())
os.chdir(before)

# shutil
shutil.copytree(ROOT + "/d", ROOT + "/copy", symlinks=True)
print(sorted(os.listdir(ROOT + "/copy")))
shutil.rmtree(ROOT + "/copy")
shutil.copy2(ROOT + "/d/b.bin", ROOT + "/copied")
shutil.move(ROOT + "/copied", ROOT + "/d/moved")
print(os.path.exists(ROOT + "/copy"), open(ROOT + "/d/moved").read())

# sqlite3 and zipfile
db = sqlite3.connect(ROOT + "/x.db")
db.execute("create table t(a)")
db.executemany("insert into t values(?)", [(i,) for i in range(1000)])
db.commit()
db.execute("delete from t where a > 10")
db.rollback()
print(db.execute("select sum(a), count(*) from t").fetchone())
db.close()
with sqlite3.connect(ROOT + "/x.db") as db:
    print(db.execute("select max(a) from t").fetchone())
db.close()
with zipfile.ZipFile(ROOT + "/z.zip", "w", zipfile.ZIP_DEFLATED) as z:
    z.writestr("a", "b" * 1000)
    z.write(ROOT + "/d/b.bin", "b.bin")
with zipfile.ZipFile(ROOT + "/z.zip") as z:
    print(z.namelist(), z.read("a") == b"b" * 1000, z.testzip())
    z.extractall(ROOT + "/unzipped")
print(sorted(os.listdir(ROOT + "/unzipped")))

# Open files: memory maps, duplicates, names that are gone
with open(ROOT + "/m", "w+b") as f:
    f.write(b"m" * 100)
    f.flush()
    view = mmap.mmap(f.fileno(), 100)
    print(view[:3])
    view[0:2] = b"XX"
    view.flush()
    view.close()
print(open(ROOT + "/m", "rb").read(5))
f = open(ROOT + "/gone", "w+")
f.write("still here")
os.unlink(ROOT + "/gone")
f.seek(0)
print(f.read(), os.path.exists(ROOT + "/gone"))
f.close()
fd = os.open(ROOT + "/q", os.O_RDWR | os.O_CREAT | os.O_EXCL)
other = os.dup(fd)
os.write(fd, b"1")
os.close(fd)
os.write(other, b"2")
os.fsync(other)
os.ftruncate(other, 10)
print(os.fstat(other).st_size, os.pread(other, 2, 0), os.pwrite(other, b"3", 1))
os.close(other)
print(open(ROOT + "/q", "rb").read())
with tempfile.NamedTemporaryFile(dir=ROOT) as t:
    t.write(b"hi")
    t.flush()
    print(os.path.getsize(t.name))

# Times and modes
os.utime(ROOT + "/m", (1, 2))
print(os.stat(ROOT + "/m").st_mtime)
os.chmod(ROOT + "/m", 0o600)
print(oct(os.stat(ROOT + "/m").st_mode))
os.truncate(ROOT + "/m", 3)
print(os.path.getsize(ROOT + "/m"), os.stat(ROOT + "/m").st_mtime > 2)

# Text
with open(ROOT + "/kept.txt", "w", encoding="utf-8") as f:
    print("hé", file=f)
print([line for line in open(ROOT + "/kept.txt", encoding="utf-8")], sorted(os.listdir(ROOT)))
