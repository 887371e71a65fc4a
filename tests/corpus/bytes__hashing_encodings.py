"""hashlib, hmac, zlib, gzip, bz2, lzma, base64, binascii, codecs, quopri: digests, checksums, round trips, refused input."""
import base64
import binascii
import bz2
import gzip
import hashlib
import hmac
import io
import lzma
import quopri
import zlib

message = b"The quick brown fox jumps over the lazy dog"
for name in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "blake2b", "blake2s"):
    digest = hashlib.new(name, message)
    assert digest.hexdigest() == getattr(hashlib, name)(message).hexdigest()
    print(f"{name:8} {digest.digest_size:2} {digest.block_size:3} {digest.hexdigest()[:40]}")
print(hashlib.shake_128(message).hexdigest(10), hashlib.shake_256(b"").hexdigest(8), hashlib.blake2b(message, digest_size=8, key=b"key", salt=b"salt", person=b"me").hexdigest())
running = hashlib.sha256()
for start in range(0, len(message), 7):
    running.update(message[start : start + 7])
fork = running.copy()
fork.update(b"!")
print(running.digest() == hashlib.sha256(message).digest(), fork.hexdigest() == running.hexdigest(), hashlib.sha256("é".encode()).hexdigest()[:12], running.name)


def pbkdf2(password, salt, rounds):
    """One block of PBKDF2-HMAC-SHA256 by hand: hashlib has it only where OpenSSL is."""
    block = total = hmac.digest(password, salt + b"\0\0\0\1", "sha256")
    for _ in range(rounds - 1):
        block = hmac.digest(password, block, "sha256")
        total = bytes(a ^ b for a, b in zip(total, block))
    return total


derived = pbkdf2(b"password", b"salt", 10)
if hasattr(hashlib, "pbkdf2_hmac"):
    assert derived == hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 10)
print(derived.hex()[:32], {"md5", "sha256", "sha3_512"} <= hashlib.algorithms_guaranteed)
mac = hmac.new(b"key", message, "sha256")
print(mac.hexdigest()[:32], hmac.compare_digest(mac.digest(), hmac.digest(b"key", message, "sha256")), hmac.compare_digest("a", "b"), mac.name)
for bad in (lambda: hashlib.sha256("text"), lambda: hashlib.new("nope"), lambda: hmac.new("key", b"", "sha256"), lambda: hmac.compare_digest("é", "e")):
    try:
        bad()
    except (TypeError, ValueError) as error:
        print(type(error).__name__, end=" ")
print()

print(zlib.crc32(message), zlib.adler32(message), zlib.crc32(b"world", zlib.crc32(b"hello ")) == zlib.crc32(b"hello world"), binascii.crc32(message) == zlib.crc32(message), binascii.crc_hqx(b"abc", 0))
text = b"".join(b"%d squared is %d; " % (n, n * n) for n in range(400))
for level in (0, 1, 9):
    packed = zlib.compress(text, level)
    assert zlib.decompress(packed) == text
    print(level, len(packed) < len(text), packed[:1].hex())
compressor, pieces = zlib.compressobj(wbits=-15), []
for start in range(0, len(text), 1000):
    pieces.append(compressor.compress(text[start : start + 1000]))
pieces.append(compressor.flush())
decompressor, out = zlib.decompressobj(wbits=-15), b""
for byte in b"".join(pieces) + b"trailing":
    out += decompressor.decompress(bytes([byte])) if not decompressor.eof else b""
print(out == text, decompressor.eof, decompressor.unused_data[:1], len(zlib.decompressobj().decompress(zlib.compress(text), 10)))
primed = zlib.compressobj(zdict=text[:200])
small = primed.compress(text[:100]) + primed.flush()
print("dictionary:", zlib.decompressobj(zdict=text[:200]).decompress(small) == text[:100], len(small) < len(zlib.compress(text[:100])))
for name, module in (("gzip", gzip), ("bz2", bz2), ("lzma", lzma)):
    packed = module.compress(text)
    assert module.decompress(packed) == text and module.decompress(packed + module.compress(b"more")) == text + b"more"
    try:
        module.decompress(b"not compressed data")
    except (OSError, lzma.LZMAError, EOFError) as error:
        print(name, len(packed) < len(text) // 2, packed[:2].hex(), type(error).__name__)
try:
    zlib.decompress(zlib.compress(text)[:-5])
except zlib.error as error:
    print("truncated:", type(error).__name__)
stream = io.BytesIO()
with gzip.open(stream, "wt", encoding="utf-8", newline="\n") as writer:
    print("line one", "zweite Zeile ü", sep="\n", file=writer)
stream.seek(0)
with gzip.open(stream, "rt", encoding="utf-8") as reader:
    print([line.rstrip() for line in reader], gzip.compress(b"x", mtime=0)[4:8])
with lzma.open(io.BytesIO(lzma.compress(b"a\nb\n", format=lzma.FORMAT_ALONE))) as reader:
    print(reader.readlines())

data = bytes(range(0, 256, 17)) + b"\xfb\xff"
for encode, decode in ((base64.b64encode, base64.b64decode), (base64.urlsafe_b64encode, base64.urlsafe_b64decode), (base64.b32encode, base64.b32decode), (base64.b32hexencode, base64.b32hexdecode), (base64.b16encode, base64.b16decode), (base64.b85encode, base64.b85decode), (base64.a85encode, base64.a85decode)):
    encoded = encode(data)
    assert decode(encoded) == data
    print(f"{encode.__name__:18} {encoded.decode()}")
print([base64.b64encode(b"abc"[:n]) for n in range(4)], base64.b64decode("YW Jj\n"), base64.b64decode(b"-_-_", altchars=b"-_"), base64.a85encode(b"\0\0\0\0    x", foldspaces=True, adobe=True))
for bad in (lambda: base64.b64decode("abc"), lambda: base64.b64decode("a$Jj", validate=True), lambda: base64.b32decode("a======="), lambda: base64.b16decode("0G"), lambda: base64.b85decode(b"\x7f"), lambda: base64.b64encode("text")):
    try:
        bad()
    except (ValueError, TypeError) as error:
        print(type(error).__name__, end=" ")
print()
print(base64.encodebytes(bytes(60)).count(b"\n"), binascii.hexlify(data[:4], "-"), binascii.unhexlify("00ff"), binascii.b2a_base64(b"hi", newline=False), binascii.a2b_hex(b"4142"), binascii.b2a_uu(b"cat"), binascii.a2b_uu(b"#8V%T\n"))
print(quopri.encodestring("naïve = ü".encode()), quopri.decodestring(b"caf=C3=A9 a=\nb").decode(), binascii.a2b_qp(b"=41"), binascii.b2a_qp(b"a\tb ", quotetabs=True))


def xor_stream(key, payload):
    """A keystream out of SHA-256 in counter mode: encrypting twice gives the plain text back."""
    out = bytearray()
    for counter in range(-(-len(payload) // 32)):
        block = hashlib.sha256(key + counter.to_bytes(8, "big")).digest()
        out += bytes(a ^ b for a, b in zip(payload[counter * 32 :], block))
    return bytes(out)


sealed = xor_stream(b"k", text)
print(xor_stream(b"k", sealed) == text, hashlib.sha1(sealed).hexdigest())


def merkle(leaves):
    level = [hashlib.sha256(leaf).digest() for leaf in leaves]
    while len(level) > 1:
        level = [hashlib.sha256(level[i] + level[min(i + 1, len(level) - 1)]).digest() for i in range(0, len(level), 2)]
    return level[0].hex()


def luhn(number):
    digits = [int(d) for d in number][::-1]
    return sum(digits[::2] + [sum(divmod(2 * d, 10)) for d in digits[1::2]]) % 10 == 0


print(merkle([b"a", b"b", b"c"])[:24], merkle([b"a"])[:24], luhn("4539578763621486"), luhn("4539578763621487"), hashlib.file_digest(io.BytesIO(message), "sha256").hexdigest()[:16])
