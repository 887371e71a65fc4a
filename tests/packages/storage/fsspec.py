"""Reads files in memory and in a zip archive by one interface."""

import zipfile

import fsspec

with fsspec.open("memory://a/b.txt", "w") as file:
    file.write("hi")
assert fsspec.filesystem("memory").cat("/a/b.txt") == b"hi"
with zipfile.ZipFile("a.zip", "w") as archive:
    archive.writestr("c.txt", "ho")
with fsspec.open("zip://c.txt::a.zip", "r") as file:
    assert file.read() == "ho"
