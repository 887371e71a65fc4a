"""Packs a directory as a tarball: the same bytes each time, with the modes of files, no owners."""

import gzip
import pathlib
import sys
import tarfile

source, target, seconds = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])


def plain(entry):
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = seconds
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    return entry


with (
    open(target, "wb") as raw,
    gzip.GzipFile("", "wb", 6, raw, mtime=seconds) as packed,
    tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
):
    for path in sorted([source, *source.rglob("*")], key=lambda path: path.parts):
        name = pathlib.PurePath(source.name, path.relative_to(source)).as_posix()
        archive.add(path, name, recursive=False, filter=plain)
