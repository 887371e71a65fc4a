"""Packs the fonts as a wheel: `pack.py WHEEL MODULE COLLECTION EMOJI APACHE OFL`."""

import base64
import hashlib
import pathlib
import struct
import sys
import zipfile

to, module, collection, emoji, apache, ofl = map(pathlib.Path, sys.argv[1:])
NAME, VERSION, _ = to.name.split("-", 2)


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


info = f"{NAME}-{VERSION}.dist-info"
metadata = f"""\
Metadata-Version: 2.4
Name: isolet-fonts
Version: {VERSION}
Summary: Fonts for Chinese, Japanese, Korean and emoji
License-Expression: Apache-2.0 AND OFL-1.1
License-File: NOTICE
License-File: WenQuanYiMicroHei.txt
License-File: NotoEmoji.txt
"""
notice = """\
WenQuanYi Micro Hei 0.2.0-beta, Apache License 2.0
Copyright 2007 Google Corp.
Copyright 2008-2009 WenQuanYi Project Board of Trustees and Qianqian Fang
Changed by isolet: the first font of the collection, as a file of its own.

Noto Emoji, SIL Open Font License 1.1
Copyright 2013-2026 Google LLC
"""
contents = {
    f"{NAME}/__init__.py": module.read_bytes(),
    f"{NAME}/WenQuanYiMicroHei.ttf": first_font(collection.read_bytes()),
    f"{NAME}/NotoEmoji-Regular.ttf": emoji.read_bytes(),
    f"{info}/METADATA": metadata.encode(),
    f"{info}/WHEEL": (
        b"Wheel-Version: 1.0\nGenerator: isolet\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    ),
    f"{info}/licenses/NOTICE": notice.encode(),
    f"{info}/licenses/WenQuanYiMicroHei.txt": apache.read_bytes(),
    f"{info}/licenses/NotoEmoji.txt": ofl.read_bytes(),
}
record = ""
for name, data in contents.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record += f"{name},sha256={digest},{len(data)}\n"
contents[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
with zipfile.ZipFile(to, "w") as archive:
    for name, data in contents.items():
        archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
