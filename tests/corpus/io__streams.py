"""io and print: StringIO, BytesIO, buffered and raw layers, TextIOWrapper, newlines, own streams, input(), redirection."""
import builtins
import contextlib
import io
import sys

out = io.StringIO()
print("a", 1, None, sep="-", end="|", file=out)
print(*"xyz", sep="", file=out)
print(file=out)
print(repr(out.getvalue()), out.tell(), out.seek(2), out.read(3), out.write("MID"), out.getvalue()[:9], out.truncate(4), repr(out.getvalue()))
text = io.StringIO("one\ntwo\r\nthree\rfour", newline=None)
print(text.readlines(), io.StringIO("a\r\nb", newline="").readlines(), io.StringIO("first\nsecond").readline(3), list(io.StringIO("x\ny")), next(io.StringIO("n")))
with io.StringIO("closing") as stream:
    print(stream.readable(), stream.writable(), stream.seekable(), stream.isatty())
try:
    stream.read()
except ValueError as error:
    print("closed:", error)

raw = io.BytesIO(b"0123456789")
print(raw.read(3), raw.peek(2) if hasattr(raw, "peek") else "no peek", raw.seek(-2, io.SEEK_END), raw.read(), raw.read(), raw.seek(0), raw.readinto(bytearray(4)), raw.tell(), raw.getbuffer()[1])
raw.seek(15)
raw.write(b"!")
print(raw.getvalue(), raw.truncate(3), raw.getvalue(), io.BytesIO(b"l1\nl2").readlines(), raw.read1(2) if raw.seek(0) == 0 else None)
for bad in (lambda: io.StringIO().write(b"x"), lambda: io.BytesIO().write("x"), lambda: io.StringIO().seek(-1), lambda: io.StringIO("abc").seek(1, 1), lambda: io.BytesIO().fileno(), lambda: io.TextIOWrapper(io.BytesIO(b"\xff")).buffer and io.TextIOWrapper(io.BytesIO(b"\xff"), "utf-8").read()):
    try:
        bad()
    except (TypeError, ValueError, OSError) as error:
        print(type(error).__name__, end=" ")
print()

wrapper = io.TextIOWrapper(io.BytesIO("größe\nzwei\r\n".encode("utf-16")), encoding="utf-16", newline="")
print(wrapper.readline(), repr(wrapper.read()), wrapper.encoding, wrapper.errors, wrapper.newlines)
target = io.BytesIO()
writer = io.TextIOWrapper(target, encoding="latin-1", errors="replace", newline="\r\n", write_through=True)
writer.write("é€\n")
writer.reconfigure(errors="xmlcharrefreplace")
writer.write("€\n")
writer.flush()
print(target.getvalue(), writer.detach() is target, target.closed)


class Slow(io.RawIOBase):
    """A raw stream that gives at most three bytes at a time and counts the calls."""

    def __init__(self, data):
        self.data, self.calls, self.written = data, 0, []

    def readable(self):
        return True

    def writable(self):
        return True

    def readinto(self, buffer):
        self.calls += 1
        piece, self.data = self.data[:3], self.data[3:]
        buffer[: len(piece)] = piece
        return len(piece)

    def write(self, data):
        self.written.append(bytes(data))
        return len(data)


slow = Slow(b"line one\nline two\nrest")
reader = io.BufferedReader(slow, buffer_size=8)
print(reader.peek(1)[:3], reader.readline(), slow.calls > 2, reader.read(4), reader.readlines(), reader.read())
slow = Slow(b"")
buffered = io.BufferedWriter(slow, buffer_size=10)
for piece in (b"abc", b"defg", b"hijklmnop", b"q"):
    buffered.write(piece)
buffered.flush()
print(b"".join(slow.written), len(slow.written) < 4, io.BufferedRWPair(Slow(b"in"), slow).read())
print([c for c in iter(lambda s=io.StringIO("abc"): s.read(1), "")], io.IncrementalNewlineDecoder(None, True).decode("a\r\nb\r"), isinstance(out, io.TextIOBase), issubclass(io.BytesIO, io.BufferedIOBase))


class Tee(io.TextIOBase):
    def __init__(self, *targets):
        self.targets = targets

    def write(self, text):
        for target in self.targets:
            target.write(text)
        return len(text)


class Upper:
    """Anything with write() will do for print."""

    def __init__(self):
        self.parts = []

    def write(self, text):
        self.parts.append(text.upper())


first, second, loud = io.StringIO(), io.StringIO(), Upper()
print("to both", file=Tee(first, second))
print("quiet words", 5, file=loud)
print(first.getvalue() == second.getvalue(), loud.parts)
before = sys.stdout
with contextlib.redirect_stdout(io.StringIO()) as captured, contextlib.redirect_stderr(io.StringIO()) as errors:
    print("inside")
    sys.stdout.write("written\n")
    print("to stderr", file=sys.stderr)
print(captured.getvalue().split(), errors.getvalue().strip(), sys.stdout is before)

original = sys.stdin
sys.stdin = io.StringIO("Ann\n42\n\nlast line without newline")
try:
    prompt_free = [input(), int(input()), input()]
    print(prompt_free, sys.stdin.read())
    try:
        input()
    except EOFError as error:
        print(type(error).__name__)
    sys.stdin = io.StringIO("l1\nl2\n")
    print([line.strip() for line in sys.stdin])
finally:
    sys.stdin = original

print("flushed", end="", flush=True)
print("", "with", "tabs", sep="\t")
sys.stdout.write("no newline of its own;")
sys.stdout.writelines([" several", " parts\n"])
sys.stdout.flush()
print("unicode: é 日本 😀 \u2028 end", "tab\tbell-free", sep=" / ")
if hasattr(sys.stdout, "buffer"):
    sys.stdout.flush()
    sys.stdout.buffer.write("bytes through the buffer: ü\n".encode())
    sys.stdout.buffer.flush()
else:
    print("bytes through the buffer: ü")
print(sys.stdout.encoding.lower().replace("-", ""), sys.stdout.writable(), sys.stderr.writable())
try:
    print("x", nonsense=1)
except TypeError as error:
    print(type(error).__name__)
saved = builtins.print
builtins.print = lambda *a, **k: saved("[", *a, "]", **k)
print("patched")
builtins.print = saved
print("x" * 5000 == "".join(["x"] * 5000), len("y" * 20000))
for n in range(200):
    print(n, end="," if n < 199 else "\n")
