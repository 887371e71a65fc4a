"""struct, array, memoryview and bytearray: packing in fixed sizes, byte orders, views without copies, a binary file format."""
import array
import io
import struct
import sys

print(struct.pack("<bBhHiIqQ", -1, 255, -2, 65535, -3, 2**32 - 1, -4, 2**64 - 1).hex(" "), struct.calcsize("<bBhHiIqQ"), struct.calcsize(">3s2xI?"))
print(struct.pack(">I", 1) == struct.pack("<I", 1)[::-1], struct.unpack(">hhl", b"\0\1\0\2\0\0\0\3"), struct.pack("!5s3pc?", b"hi", b"abc", b"z", True), struct.unpack("<fd", struct.pack("<fd", 1.5, -0.1)))
header = struct.Struct(">4sHBx")
packed = header.pack(b"ISOL", 513, 7)
print(packed, header.size, header.unpack(packed), header.format, list(struct.iter_unpack("<Hb", b"\1\0\2\3\0\xff")))
target = bytearray(12)
struct.pack_into(">HH", target, 4, 0xDEAD, 0xBEEF)
print(target.hex(), struct.unpack_from(">H", target, 6)[0] == 0xBEEF, struct.calcsize("=l"), struct.calcsize("=q"))
for bad in (lambda: struct.pack("B", 256), lambda: struct.pack("<i", "x"), lambda: struct.unpack("<I", b"123"), lambda: struct.calcsize("Y"), lambda: struct.pack("<h", 40000)):
    try:
        bad()
    except struct.error as error:
        print(type(error).__name__, end=" ")
print()

numbers = array.array("i", [3, 1, 2])
numbers.append(9)
numbers.extend(range(2))
numbers.insert(0, -1)
print(numbers, numbers.typecode, numbers.itemsize, len(numbers.tobytes()), numbers.index(9), numbers.count(1), numbers.pop(), numbers[1:3], numbers + array.array("i", [7]))
numbers.byteswap()
print(numbers[1], numbers.tolist()[0])
numbers.byteswap()
doubles = array.array("d", [1.5, -2.25])
print(doubles.tobytes().hex(), doubles, sum(doubles), array.array("d", [1]) == array.array("f", [1]), array.array("B", b"abc").tolist(), array.array("H", [1, 2]) * 2, numbers < array.array("i", [5]))
for bad in (lambda: numbers.append(2**40), lambda: numbers.append("x"), lambda: array.array("z"), lambda: array.array("b", [200]), lambda: numbers.extend(array.array("d", [1]))):
    try:
        bad()
    except (OverflowError, TypeError, ValueError) as error:
        print(type(error).__name__, end=" ")
print()
stored = io.BytesIO(array.array("h", [10, 20, 30]).tobytes())
loaded = array.array("h")
loaded.frombytes(stored.getvalue())
print(loaded, sys.byteorder, memoryview(loaded).format, memoryview(loaded).nbytes)

raw = bytearray(b"0123456789abcdef")
view = memoryview(raw)
part = view[4:12]
part[0:2] = b"XY"
print(raw, bytes(part), part.tolist()[:3], view.readonly, memoryview(b"x").readonly, len(part), part[::-2].tobytes(), view[-1], part == b"XY6789ab")
words = view.cast("I")
print(len(words), words.itemsize, words.shape, words.format, words[0] == int.from_bytes(raw[:4], sys.byteorder))
words[3] = 0
print(bytes(raw[12:]), view.hex(":", 4), view.obj is raw, view.contiguous, view.c_contiguous, view.strides)
grid = view.cast("B", shape=[4, 4])
print(grid.ndim, grid.shape, grid[1, 2], grid.tolist()[1], grid.strides)
for bad in (lambda: raw.append(1), lambda: memoryview(b"ro").__setitem__(0, 1), lambda: view.__setitem__(slice(0, 2), b"abc"), lambda: memoryview("text"), lambda: view[99], lambda: view.cast("I", shape=[3])):
    try:
        bad()
    except (BufferError, TypeError, ValueError, IndexError) as error:
        print(type(error).__name__, end=" ")
print()
for v in (grid, words, part, view):
    v.release()
raw.append(33)
print(raw[-1], len(raw))
try:
    view[0]
except ValueError as error:
    print("released:", type(error).__name__)
with memoryview(b"context") as m:
    print(m[1:4].tobytes(), hash(memoryview(b"ab")) == hash(b"ab"), m.toreadonly().readonly)


class Records:
    """A small self-describing binary container: header, column table, rows, checksum."""

    MAGIC = b"RCRD"
    CODES = {int: "q", float: "d", bytes: "8s"}

    @classmethod
    def write(cls, stream, names, rows):
        codes = [cls.CODES[type(v)] for v in rows[0]]
        body = io.BytesIO()
        body.write(struct.pack("<4sHI", cls.MAGIC, len(names), len(rows)))
        for name, code in zip(names, codes):
            encoded = name.encode()
            body.write(struct.pack(f"<B{len(encoded)}s2s", len(encoded), encoded, code.encode()))
        row_format = struct.Struct("<" + "".join(codes))
        for row in rows:
            body.write(row_format.pack(*row))
        data = body.getvalue()
        stream.write(data + struct.pack("<I", sum(data) % 2**32))
        return len(data) + 4

    @classmethod
    def read(cls, data):
        view = memoryview(data)
        body, (checksum,) = view[:-4], struct.unpack("<I", view[-4:])
        if sum(body) % 2**32 != checksum:
            raise ValueError("checksum mismatch")
        magic, columns, count = struct.unpack_from("<4sHI", body)
        if magic != cls.MAGIC:
            raise ValueError("bad magic")
        at, names, codes = struct.calcsize("<4sHI"), [], []
        for _ in range(columns):
            size = body[at]
            name, code = struct.unpack_from(f"<{size}s2s", body, at + 1)
            names.append(name.decode())
            codes.append(code.rstrip(b"\0").decode())
            at += size + 3
        return [dict(zip(names, row)) for row in struct.iter_unpack("<" + "".join(codes), body[at:])][:count]


stream = io.BytesIO()
print("written", Records.write(stream, ["id", "größe", "tag"], [(1, 2.5, b"first"), (-(2**60), 1e300, b"second!!")]))
print(Records.read(stream.getvalue()))
damaged = bytearray(stream.getvalue())
damaged[20] ^= 0x10
try:
    Records.read(damaged)
except ValueError as error:
    print("damaged:", error)


def hexdump(data, width=16):
    for offset in range(0, len(data), width):
        chunk = data[offset : offset + width]
        yield f"{offset:04x}  {chunk.hex(' '):<{width * 3 - 1}}  {''.join(chr(b) if 32 <= b < 127 else '.' for b in chunk)}"


print("\n".join(hexdump(stream.getvalue()[:40])))


def varint(n):
    out = bytearray()
    while True:
        n, low = n >> 7, n & 0x7F
        out.append(low | (0x80 if n else 0))
        if not n:
            return bytes(out)


print([varint(n).hex() for n in (0, 127, 128, 300, 2**40)], bin(int.from_bytes(b"\xa5\x0f", "big"))[2:].zfill(16), bytes(b ^ k for b, k in zip(b"secret", b"keykey")).hex())
