"""Packs the current directory into a bundle: the same bytes each time, with the modes of files."""

import pathlib
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1], "w") as bundle:
    # Only files: mcpb takes a directory's entry for a file and fails.
    for path in sorted(path for path in pathlib.Path().rglob("*") if path.is_file()):
        entry = zipfile.ZipInfo(path.as_posix())
        entry.create_system = 3  # Unix, which is what has modes
        entry.external_attr = path.stat().st_mode << 16
        bundle.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED, 9)
