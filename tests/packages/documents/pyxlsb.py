"""Reads dates of binary Excel, and refuses what is no such file."""

import datetime
import zipfile

import pyxlsb

assert pyxlsb.convert_date(45658.5) == datetime.datetime(2025, 1, 1, 12)
open("a.xlsb", "w").write("no")
try:
    pyxlsb.open_workbook("a.xlsb")
    raise SystemExit("it opens any file")
except zipfile.BadZipFile:
    pass
