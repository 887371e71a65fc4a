# What of Python a subject has: each program has to come to its end. Not a kind of survival.

# %% classes that inherit, with properties and a metaclass
class Meta(type):
    def __call__(cls, *args):
        return super().__call__(*args)
class Base(metaclass=Meta):
    @property
    def name(self):
        return "base"
class Derived(Base):
    def greet(self):
        return super().name
assert Derived().greet() == "base"

# %% generators and coroutines
import asyncio
def count():
    yield from range(3)
async def later():
    await asyncio.sleep(0)
    return sum(count())
assert asyncio.run(later()) == 3

# %% pattern matching and groups of exceptions
try:
    raise ExceptionGroup("all", [ValueError(1), TypeError(2)])
except* ValueError as group:
    match group.exceptions[0].args:
        case [number]:
            assert number == 1
except* TypeError:
    pass

# %% template strings, of Python 3.14
exec("text = t'{1}'\nassert text.interpolations[0].value == 1")

# %% dataclasses, enumerations and regular expressions
import dataclasses, enum, re
@dataclasses.dataclass
class Point:
    x: int
class Colour(enum.Enum):
    RED = 1
assert Point(1) == Point(1) and Colour(1) is Colour.RED and re.fullmatch(r"(\w)\1", "aa")

# %% a file written and read back
import os, tempfile
path = os.path.join(tempfile.gettempdir(), "here")
with open(path, "w") as file:
    file.write("text")
with open(path) as file:
    assert file.read() == "text"

# %% time zones
import datetime, zoneinfo
summer = datetime.datetime(2026, 7, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
assert summer.utcoffset() == datetime.timedelta(hours=2)

# %% a thread
import threading
ran = []
thread = threading.Thread(target=ran.append, args=[1])
thread.start()
thread.join()
assert ran == [1]

# %% a pool of threads
import concurrent.futures
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    assert list(pool.map(abs, [-1, -2])) == [1, 2]

# %% a database of sqlite3
import sqlite3
assert sqlite3.connect(":memory:").execute("select 1 + 1").fetchone() == (2,)

# %% gzip, bz2, lzma and zip files
import bz2, gzip, io, lzma, zipfile
for module in (bz2, gzip, lzma):
    assert module.decompress(module.compress(b"text")) == b"text"
with zipfile.ZipFile(io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr("a", "text")
    assert archive.namelist() == ["a"]

# %% ctypes
import ctypes
assert ctypes.c_int.from_buffer_copy(b"\x01\x00\x00\x00").value == 1

# %% ssl and hashlib
import hashlib, ssl
assert ssl.OPENSSL_VERSION and hashlib.sha3_256(b"").hexdigest().startswith("a7ff")

# %% pickles of classes of the session
import pickle
class Kept:
    pass
assert isinstance(pickle.loads(pickle.dumps(Kept())), Kept)

# %% a traceback with its source line
import traceback
def fails():
    return 1 / 0  # the line
try:
    fails()
except ZeroDivisionError:
    assert "# the line" in traceback.format_exc()

# %% numpy
import numpy
assert numpy.linalg.inv(numpy.eye(2) * 2)[0, 0] == 0.5

# %% pandas
import pandas
assert pandas.DataFrame({"a": [1, 1, 2]}).groupby("a").size().to_list() == [2, 1]

# %% another program, by subprocess
import subprocess
assert subprocess.run(["true"]).returncode == 0
