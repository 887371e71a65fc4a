"""Packs a package of ours as a wheel: `pack.py WHEEL DIRECTORY SUMMARY LICENCE [FONT...]`.

DIRECTORY has the modules, and its `licenses` the texts that the wheel's metadata has.
"""

import base64
import hashlib
import pathlib
import struct
import sys
import zipfile

to, directory = map(pathlib.Path, sys.argv[1:3])
summary, licence, fonts = sys.argv[3], sys.argv[4], [pathlib.Path(each) for each in sys.argv[5:]]
NAME, VERSION, _ = to.name.split("-", 2)
INFO = f"{NAME}-{VERSION}.dist-info"


def first_font(collection):
    """Returns the first font of an OpenType collection, as a file of its own. Programs that make
    PDF take no collections.
    """
    (start,) = struct.unpack_from(">I", collection, 12)
    (count,) = struct.unpack_from(">H", collection, start + 4)
    header, records, tables = collection[start : start + 12], b"", b""
    for entry in range(start + 12, start + 12 + 16 * count, 16):
        tag, checksum, offset, length = struct.unpack_from(">4sIII", collection, entry)
        place = len(header) + 16 * count + len(tables)
        records += struct.pack(">4sIII", tag, checksum, place, length)
        tables += collection[offset : offset + length] + b"\0" * (-length % 4)
    return header + records + tables


contents = {f"{NAME}/{path.name}": path.read_bytes() for path in sorted(directory.glob("*.py"))}
for font in fonts:
    if font.suffix == ".ttc":
        contents[f"{NAME}/{font.stem}.ttf"] = first_font(font.read_bytes())
    else:
        contents[f"{NAME}/{font.name}"] = font.read_bytes()
licences = {path.name: path.read_bytes() for path in sorted((directory / "licenses").iterdir())}
headers = [
    "Metadata-Version: 2.4",
    f"Name: {NAME.replace('_', '-')}",
    f"Version: {VERSION}",
    f"Summary: {summary}",
    f"License-Expression: {licence}",
    *(f"License-File: {name}" for name in licences),
]
contents[f"{INFO}/METADATA"] = "\n".join([*headers, ""]).encode()
contents[f"{INFO}/WHEEL"] = (
    b"Wheel-Version: 1.0\nGenerator: isolet\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
)
contents.update({f"{INFO}/licenses/{name}": text for name, text in licences.items()})
record = ""
for name, data in contents.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record += f"{name},sha256={digest},{len(data)}\n"
contents[f"{INFO}/RECORD"] = f"{record}{INFO}/RECORD,,\n".encode()
with zipfile.ZipFile(to, "w") as archive:
    for name, data in contents.items():
        archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
