"""zipfile and tarfile in memory: writing, reading, listing, compression, passwords refused, traversal refused, comments."""
import datetime
import io
import stat
import tarfile
import tempfile
import zipfile
from pathlib import Path

files = {"readme.txt": b"hello\n" * 50, "src/main.py": b"print('hi')\n", "src/\u00fcnicode.bin": bytes(range(256)), "empty": b""}
buffer = io.BytesIO()
with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
    archive.comment = b"made in memory"
    for name, data in files.items():
        info = zipfile.ZipInfo(name, (2024, 2, 29, 13, 5, 8))
        info.compress_type = zipfile.ZIP_STORED if name == "empty" else zipfile.ZIP_DEFLATED
        info.external_attr = 0o640 << 16
        archive.writestr(info, data)
    archive.mkdir("folder") if hasattr(archive, "mkdir") else archive.writestr("folder/", b"")
    with archive.open("streamed.txt", "w") as stream:
        for n in range(3):
            stream.write(f"line {n}\n".encode())
print(zipfile.is_zipfile(buffer), zipfile.is_zipfile(io.BytesIO(b"PK nothing")))
with zipfile.ZipFile(buffer) as archive:
    print(archive.namelist(), archive.comment, archive.testzip())
    for info in archive.infolist()[:4]:
        print(info.filename, info.file_size, f"{info.CRC:08x}", info.date_time, oct(info.external_attr >> 16), info.is_dir(), info.compress_size <= info.file_size, info.compress_type)
    assert all(archive.read(name) == data for name, data in files.items())
    with archive.open("streamed.txt") as stream:
        print(stream.readline(), stream.peek(4)[:4], stream.read(), stream.seekable())
    with io.TextIOWrapper(archive.open("readme.txt"), "utf-8") as text:
        print(sum(1 for _ in text))
    root = zipfile.Path(archive)
    print(sorted(p.name for p in root.iterdir()), (root / "src" / "main.py").read_text().strip(), (root / "nope").exists(), (root / "src").is_dir(), sorted(p.name for p in (root / "src").iterdir()))
    for bad in (lambda: archive.read("absent"), lambda: archive.open("readme.txt", "q"), lambda: archive.writestr("x", "y")):
        try:
            bad()
        except (KeyError, ValueError) as error:
            print(type(error).__name__, end=" ")
    print()
with zipfile.ZipFile(buffer, "a") as archive:
    archive.writestr("added.txt", "later")
    print(len(archive.namelist()), archive.getinfo("added.txt").file_size)
damaged = bytearray(buffer.getvalue())
position = damaged.index(b"print('hi')") if b"print('hi')" in damaged else damaged.index(b"src/main.py") + 14
damaged[position] ^= 0xFF
try:
    with zipfile.ZipFile(io.BytesIO(damaged)) as archive:
        archive.read("src/main.py")
        print("undetected")
except Exception as error:
    print("damage found:", type(error).__name__ in ("BadZipFile", "error"))
for bad in (b"", b"not a zip", buffer.getvalue()[:100]):
    try:
        zipfile.ZipFile(io.BytesIO(bad))
    except zipfile.BadZipFile as error:
        print(type(error).__name__, end=" ")
print()
for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method, allowZip64=False) as archive:
        archive.writestr("z", b"z" * 5000)
    with zipfile.ZipFile(packed) as archive:
        print(method, archive.read("z") == b"z" * 5000, archive.getinfo("z").compress_size < 500)

for mode in ("", "gz", "bz2", "xz"):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=f"w:{mode}", format=tarfile.PAX_FORMAT) as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.mode, info.uname = len(data), 1709211909, 0o644, "ann"
            tar.addfile(info, io.BytesIO(data))
        directory = tarfile.TarInfo("d" * 120)
        directory.type = tarfile.DIRTYPE
        tar.addfile(directory)
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "readme.txt"
        tar.addfile(link)
    stream.seek(0)
    with tarfile.open(fileobj=stream, mode="r:*") as tar:
        members = {m.name: m for m in tar}
        assert all(tar.extractfile(name).read() == data for name, data in files.items())
        print(f"tar {mode or 'plain':5}", len(members), members["d" * 120].isdir(), members["link"].issym(), tar.extractfile("link").read(5), members["readme.txt"].uname, stat.filemode(members["readme.txt"].mode), datetime.datetime.fromtimestamp(members["empty"].mtime, datetime.timezone.utc))
for bad in (b"nothing", b"\0" * 100, stream.getvalue()[:50]):
    try:
        tarfile.open(fileobj=io.BytesIO(bad))
    except tarfile.TarError as error:
        print(isinstance(error, tarfile.ReadError), end=" ")
print()

with tempfile.TemporaryDirectory() as name:
    base = Path(name)
    hostile = io.BytesIO()
    with tarfile.open(fileobj=hostile, mode="w") as tar:
        for member in ("fine.txt", "../outside.txt", "/absolute.txt"):
            info = tarfile.TarInfo(member)
            info.size = 2
            tar.addfile(info, io.BytesIO(b"ok"))
    hostile.seek(0)
    (base / "in").mkdir()
    with tarfile.open(fileobj=hostile) as tar:
        for member in tar.getmembers():
            parts = Path(member.name).parts
            safe = not Path(member.name).is_absolute() and ".." not in parts
            if safe:
                (base / "in" / member.name).write_bytes(tar.extractfile(member).read())
            print(member.name, "extracted" if safe else "refused")
    print(sorted(p.relative_to(base).as_posix() for p in base.rglob("*")))
    hostile = io.BytesIO()
    with zipfile.ZipFile(hostile, "w") as archive:
        archive.writestr("../../escape.txt", "x")
        archive.writestr("/abs.txt", "y")
    with zipfile.ZipFile(hostile) as archive:
        archive.extractall(base / "zip")
    print(sorted(p.relative_to(base / "zip").as_posix() for p in (base / "zip").rglob("*")), (base / "escape.txt").exists())
    (base / "tree" / "a").mkdir(parents=True)
    (base / "tree" / "a" / "one.txt").write_text("1")
    (base / "tree" / "two.txt").write_text("22")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        tar.add(base / "tree", arcname="t", filter=lambda info: None if info.name.endswith("two.txt") else info)
    packed.seek(0)
    with tarfile.open(fileobj=packed) as tar:
        print(sorted(tar.getnames()))


def zip_of(mapping):
    """Archives inside archives."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, value in mapping.items():
            archive.writestr(name, zip_of(value) if isinstance(value, dict) else value)
    return out.getvalue()


def walk(data, prefix=""):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            content = archive.read(name)
            if zipfile.is_zipfile(io.BytesIO(content)):
                yield from walk(content, f"{prefix}{name}!/")
            else:
                yield f"{prefix}{name}", content.decode()


print(dict(walk(zip_of({"top.txt": "1", "inner.zip": {"deep.zip": {"core.txt": "2"}, "side.txt": "3"}}))))
