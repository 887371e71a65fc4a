"""Writes the seeds of all targets anew, into `corpus/TARGET/NAME`: `python3 fuzz/seeds.py`."""

import io
import marshal
import pathlib
import struct
import zipfile

import seeds_of_clients

CORPUS = pathlib.Path(__file__).parent / "corpus"


def plain(value):
    return marshal.dumps(value, 2)


def nested(levels, inner=b"N"):
    return b"[\x01\0\0\0" * levels + inner


VALUE = {
    "none": plain(None),
    "scalars": plain([None, True, False, 0, -1, 2.5, "text", b"bytes"]),
    "int-edges": plain([2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1]),
    "int-of-many-digits": plain(-(10**300)),
    "int-with-leading-zeros": b"l\x03\0\0\0\x01\0\0\0\0\0",
    "int-with-wide-digits": b"l\x02\0\0\0\xff\xff\xff\xff",
    "float-kinds": plain([0.0, -0.0, float("inf"), float("-inf"), 1e-320]),
    "float-nan": b"g\x01\0\0\0\0\0\xf8\xff",
    "text-of-every-width": plain("a\x00é€😀\u0085'\"\\"),
    "text-interned": b"t\x03\0\0\0abc",
    "text-not-utf8": b"u\x02\0\0\0\xc3\x28",
    "dict-of-scalars": plain({"a": 1, 2: "b", None: 1.5, b"k": True, 10**20: None}),
    "dict-of-one-pair-each": plain([{None: None}] * 12),
    "dict-with-a-list-as-key": b"{[\x01\0\0\0NN0",
    "dict-that-does-not-end": b"{NN",
    "list-of-tuples-and-sets": b"[\x03\0\0\0(\x01\0\0\0N<\x01\0\0\0T>\x01\0\0\0F",
    "list-of-false-length": b"[\xff\xff\xff\x7f" * 3 + b"N",
    "nested-127": nested(127),
    "nested-128-around-nothing": nested(128, b"[\0\0\0\0"),
    "nested-130": nested(130),
    "serde-token": plain({"$isolet::BigInt": "123"}),
    "code-object": b"c",
}

ERROR = {"type": "ValueError", "message": "no", "args": '["no"]', "traceback": "Traceback ..."}
GET = {"method": "GET", "url": "https://api.example.com/x", "headers": [], "body": None}


def headers(*pairs, **fields):
    return plain(GET | {"headers": [list(pair) for pair in pairs]} | fields)


FRAME = {
    "report-completed": plain({"status": "completed", "value": [1, {"a": None}], "repr": "[1]"}),
    "report-empty": plain({}),
    "report-raised": plain({"status": "raised", "exception": ERROR}),
    "report-raised-from": plain({"status": "raised", "exception": ERROR | {"cause": ERROR | {"cause": ERROR}}}),
    "report-raised-by-nothing": plain({"status": "raised"}),
    "report-exited": plain({"status": "exited", "code": 3, "exception": ERROR}),
    "report-exited-far": plain({"status": "exited", "code": 2**40}),
    "report-locals": plain({"locals": [["x", "int", None, "1"], ["s", "str", 3, "'abc'"], ["bad"]], "flag": True}),
    "report-value-error": plain({"value_error": "a value of type object cannot cross", "repr": "<object>"}),
    "report-status-twice": b"{" + plain("status") + plain("raised") + plain("status") + plain("completed") + b"0",
    "request-get": plain(GET),
    "request-post": headers(("Content-Type", b"text/plain"), ("Content-Length", b"3"), method="POST", body=b"abc"),
    "request-streamed": headers(("Transfer-Encoding", b"chunked"), method="PUT", body=True),
    "request-streamed-with-length": headers(("content-length", b"10"), method="PUT", body=True),
    "request-with-both-lengths": headers(("Content-Length", b"3"), ("Transfer-Encoding", b"chunked"), body=True),
    "request-with-its-host": headers(("Host", b"api.example.com:443"), ("Connection", b"keep-alive")),
    "request-with-another-host": headers(("host", b"evil.example"), ("Proxy-Authorization", b"x")),
    "request-that-splits": headers(("X", b"a\r\nHost: b"), ("bad name", b"")),
    "request-connect": headers(method="CONNECT"),
    "answer-value": plain([True, {"result": [1, 2]}]),
    "answer-error": plain([False, "KeyError", "'x'"]),
    "answer-key": b"[\x02\0\0\0T{[\0\0\0\0N0",
    "answer-nonsense": plain([False, 1, 2]),
}

RULES = {
    "names": """\
allow api.example.com:443
allow *.cdn.example.com
answer 93.184.216.34 2606:4700::1111
url https://api.example.com/
url http://a.b.cdn.example.com:8080/x?y#z
url https://cdn.example.com/
connect api.example.com 443""",
    "names-that-look-alike": """\
allow api.example.com
answer 93.184.216.34
url https://api.example.com.evil.test/
url https://xapi.example.com/
url https://api.ex\u0430mple.com/
url https://api\uff0eexample.com/
url https://API.Example.COM./""",
    "names-international": """\
allow b\u00fccher.example
allow *.xn--strae-oqa.example
answer 93.184.216.34
url https://B\u00dcCHER.example/
url http://a.stra\u00dfe.example/""",
    "names-and-private-answers": """\
allow *.example.com
allow localhost:8080
answer 93.184.216.34 10.0.0.1
url http://x.example.com/
url http://localhost:8080/""",
    "addresses": """\
allow 10.1.0.0/16:8080
allow [2606:4700::]/32:*
allow 192.0.2.1
url http://10.1.2.3:8080/
url http://[::ffff:10.1.2.3]:8080/
url http://0xa010203:8080/
url http://[2606:4700::1]:1234/
url http://192.0.2.1/""",
    "addresses-mapped": """\
allow [::ffff:10.1.0.0]/112
allow [::ffff:127.0.0.1]
url http://10.1.2.3/
url http://[::ffff:7f00:1]/
connect ::ffff:127.0.0.1 80""",
    "addresses-tunnelled": """\
everything
deny 10.0.0.0/8
url http://[64:ff9b::a00:1]/
url http://[2002:a00:1::]/
url http://[::a00:1]/
url http://[2001:0:a00:1::f5ff:fffe]/
url http://[fe80::200:5efe:a00:1]/""",
    "metadata": """\
everything
allow 169.254.0.0/16
allow [fd00:ec2::254]
url http://169.254.169.254/latest/
url http://[::ffff:a9fe:a9fe]/
url http://2852039166/
url http://[fd00:ec2::254]/""",
    "public": """\
public
answer 93.184.216.34
deny *.com
deny 93.184.216.0/24:8443
url https://example.org/
url https://example.com/
url https://example.org:8443/
url http://127.0.0.1/""",
    "strict-ports": """\
strict
public
allow example.org:*
deny example.net
answer 1.1.1.1
url http://example.org:8080/
url http://example.edu:8080/
url http://example.net:8080/
url http://example.org:6000/""",
    "user-information": """\
allow api.example.com
allow evil.test
answer 93.184.216.34
url https://user:secret@api.example.com/
url https://api.example.com@evil.test/
url https://api.example.com\\@evil.test/
url https://@api.example.com/""",
    "odd-urls": """\
public
answer 8.8.8.8
url HTTPS://example.org:0443/
url http://example.org:65536/
url http:///example.org/
url http:example.org
url http://ex%61mple.org/
url http://example.org\t/
url ws://example.org/
url file:///etc/passwd""",
    "odd-rules": """\
allow *
allow *.com
allow a.com,b.com
allow http://a.com
allow 10.1.2.3/16
allow 127.1
allow [::1
allow ::1
deny a.com:22
deny A_b.C-d.e
deny 2606:4700::/32:443""",
    "deny-first": """\
deny 127.0.0.0/8
deny [::1]
allow 127.0.0.1:9000
allow localhost
url http://127.0.0.1:9000/
url http://localhost/""",
    "fixed-answers": """\
allow api.example.com
resolve api.example.com 93.184.216.34 ::ffff:1.1.1.1
resolve localhost 1.1.1.1
resolve 10.0.0.1 1.1.1.1
answer 10.0.0.1
url https://api.example.com/
url https://API.example.com./""",
    "injected-headers": """\
public
answer 93.184.216.34
header https://api.example.com Authorization Bearer x
header https://api.example.com:8443 X-Key y
header http://user@a.com X z
header https://api.example.com Host evil
url https://api.example.com/
url https://api.example.com:8443/
url http://api.example.com/""",
    "servers": """\
public
allow [::1]:80
answer 93.184.216.34
connect a.example 5000
connect a.example# 5000
connect a.example?x 5000
connect user@a.example 80
connect ::1 80
connect [::1]:80 443
connect 2130706433 80
connect a.example 65536""",
    "many-answers": "public\nanswer " + " ".join(f"8.8.{n}.8" for n in range(33)) + "\nurl http://a.example/",
    "no-answers": "public\nurl http://a.example/\nconnect a.example 0\nconnect a.example/x 65536",
}
RULES = {name: text.encode() for name, text in RULES.items()}

PATH = {
    "root": b"",
    "one-name": b"hello.txt",
    "names": b"dir/inner/deep.txt",
    "parent": b"dir/../hello.txt",
    "here": b"./hello.txt",
    "absolute": b"/etc/passwd",
    "empty-name": b"dir//deep.txt",
    "slash-at-end": b"dir/",
    "nul": b"a\0b",
    "dots-and-backslashes": b".../..\\outside/%2e%2e/~/a b. ",
    "not-utf8": b"bad\xc3\xff",
    "name-of-255-bytes": b"n" * 255,
    "name-of-256-bytes": b"n" * 256,
    "depth-64": b"/".join([b"d"] * 64),
    "depth-65": b"/".join([b"d"] * 65),
    "path-of-4096-bytes": b"/".join([b"n" * 240] * 17)[:4096],
    "joined": b"a/b\xffc/d",
    "joined-too-deep": b"a/b\xffc/d/e",
    "link-inside": b"a/b/link\xff../x/./y//z",
    "link-up-and-out": b"a/link\xff../../x",
    "link-absolute": b"link\xff/etc/passwd",
    "link-to-here": b"link\xff.",
}

SCRIPT = """\
#!/usr/bin/env python3
# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "requests<3",
#   "rich[jupyter]>=13; python_version >= '3.9'",
# ]
# ///
import requests
"""

REQUIREMENT = {
    "name": "requests",
    "name-in-another-spelling": " Ruamel.Yaml__x ",
    "extras": "httpx [http2, Brotli] ~= 0.28",
    "versions": "zope__interface>=1,<2,!=1.5,==1.*",
    "versions-in-parentheses": "a (>1, !=1.5)",
    "version-odd": "a===1!2.0rc1.post2.dev3+Local.4",
    "url": "x @ git+https://example.com/x",
    "option": "--index-url=http://127.0.0.1/",
    "path": "../x",
    "two-lines": "requests\n-e .",
    "dependency": "rich>=13; extra == 'x' and python_version >= '3.9'",
    "dependency-broken": "rich; python_version >= ",
    "marker": "(os_name == 'posix' or sys.platform != \"emscripten\") and python_full_version ~= '3.14'",
    "marker-in": "'linux' not in sys_platform and platform_machine in 'x86_64 wasm32'",
    "marker-extra": "extra == 'X' or extra != 'y'",
    "marker-deep": "(" * 32 + "os_name=='a'" + ")" * 32,
    "wheel": "A_b.c-1.0+local-2build-cp314.cp37-abi3.none-pyemscripten_2026_0_wasm32.any.whl",
    "wheel-pure": "a-1!2.0.post1-py2.py3-none-any.whl",
    "script": SCRIPT,
    "script-of-two-blocks": SCRIPT + "#\n" + SCRIPT,
    "script-for-another-python": "# /// script\n# requires-python = '<3'\n# ///\n",
    "metadata": "Metadata-Version: 2.1\nName: a\nVersion: 1\nRequires-Python: >=3.8,<4\n"
    "Requires-Dist: b[c]>=2; extra == 'x'\r\nRequires-Dist: d\n\nName: body",
}
REQUIREMENT = {name: text.encode() for name, text in REQUIREMENT.items()}

METADATA = "a-1.dist-info/METADATA"
ABOUT = "Name: a\\nVersion: 1\\nRequires-Dist: b; extra == 'x'\\n"
A_WHEEL = f"""\
store 100644 1 a.py print(1)
deflate 100644 40 pkg/__init__.py x = 1\\n
store 100644 1 {METADATA} {ABOUT}
"""


def recipe(*lines):
    return ("recipe\n" + A_WHEEL + "\n".join(lines)).encode()


def archive(files, method=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as made:
        for path, content in files.items():
            made.writestr(zipfile.ZipInfo(path), content, method)
    return out.getvalue()


def announced(archive, size, announced):
    """The archive with another size of its content, wherever it is said."""
    return archive.replace(struct.pack("<I", size), struct.pack("<I", announced))


def ended(entries, size, start):
    return b"PK\5\6\0\0\0\0" + struct.pack("<HHIIH", entries, entries, size, start, 0)


WHEEL = {
    "bytes-empty-archive": ended(0, 0, 0),
    "bytes-end-elsewhere": ended(1, 46, 0),
    "bytes-wheel": archive({"a.py": "print(1)", METADATA: ABOUT.replace("\\n", "\n")}),
    "bytes-wheel-stored": archive({"a.py": "", METADATA: "Name: a\nVersion: 1\n"}, zipfile.ZIP_STORED),
    "bytes-bomb": archive({"zeros": bytes(3 << 20)}),
    "bytes-bomb-below-the-limit": archive({"zeros": bytes(1 << 20), METADATA: "Name: a\nVersion: 1\n"}),
    "bytes-bomb-announced-as-small": announced(archive({"zeros": bytes(3 << 20)}), 3 << 20, 10),
    "recipe-wheel": recipe(),
    "recipe-modules": recipe("store 100755 1 nat.cpython-314.so x", "store 0 1 lib/x.so.1.2 y", "store 40755 1 dir/"),
    "recipe-data": recipe("store 0 1 a-1.data/purelib/b.py x", "store 0 1 A-1.data/platlib/c/d y", "store 0 1 a-1.data/scripts/run z"),
    "recipe-data-over-a-file": recipe("store 0 1 a-1.data/purelib/A.py x"),
    "recipe-data-odd-rest": recipe("store 0 1 a-1.data/purelib/C:/x y", "store 0 1 a-1.data/platlib/a.py/b y"),
    "recipe-parent": recipe("store 0 1 ../x y"),
    "recipe-absolute": recipe("store 0 1 /x y"),
    "recipe-backslash": recipe("store 0 1 a\\..\\x y"),
    "recipe-two-of-a-name": recipe("store 0 1 A.PY y"),
    "recipe-file-and-directory": recipe("store 0 1 a.py/x y"),
    "recipe-link": recipe("store 120777 1 link target"),
    "recipe-other-method": recipe("12 0 1 x y"),
    "recipe-announced-bomb": recipe("deflate 0 60000 zeros 0", "lie size 900000000"),
    "recipe-size-too-small": recipe("deflate 0 9 x abc", "lie size 3", "lie local.size 3"),
    "recipe-shared-bytes": recipe("store 0 1 x y", "lie start 4294967200"),
    "recipe-names-differ": recipe("store 0 1 x y", "lie local.name z"),
    "recipe-two-directories": recipe("end start 4294967295", "end comment PK"),
    "recipe-without-metadata": b"recipe\nstore 0 1 a.py x\n",
    "recipe-encrypted": recipe("store 0 1 x y", "lie flags 1"),
}



def framed(content):
    return struct.pack("<Q", len(content)) + content


# Numbers of variants, lengths and strings as `postcard` writes them.
WIRE = {
    "nothing": b"",
    "not-ready": framed(b"\x01\x02no"),
    "write": framed(b"\x02\x00\x00\x04text"),
    "report": framed(b"\x02\x01\x00\x01N"),
    "read-stdin": framed(b"\x02\x02\x80\x08"),
    "two-frames": framed(b"\x02\x03") + framed(b"\x02\x04"),
    "call-tool": framed(b"\x02\x05\x01\x01t\x03{0}"),
    "file-stat": framed(b"\x02\x08\x00\x00\x03a/b"),
    "output": framed(b"\x03\x80\x04"),
    "write-as-body": framed(b"\x04\x01text"),
    "read-file": framed(b"\x05\x00\x00\x10"),
    "report-ahead": framed(b"\x06\x01report"),
    "reply-done": framed(b"\x07\x01\x80\x80\x04"),
    "reply-failed": framed(b"\x07\x06\x05sadly"),
    "empty-frame": framed(b""),
    "longer-than-claimed": framed(b"\x02\x03") + b"\x00",
    "shorter-than-claimed": struct.pack("<Q", 100) + b"\x02",
    "longer-than-the-limit": struct.pack("<Q", 2**64 - 1),
}



def ring(*words):
    return struct.pack(f"<{len(words)}Q", *words)


# Words that are both the contents of the ring and steps: `src/fuzzing/output_ring.rs` reads them.
RING = {
    "nothing": b"",
    "one-line": ring(4, 0x0A6B6F),
    "both-streams": ring(2 << 32, 1, 4, 1 << 32 | 3, 0x6F6B0A),
    "longer-than-the-ring": ring(2**32 - 1, 13, 2**62),
    "end-before-the-start": ring(5, 2**64 - 2),
    "another-stream": ring(7 << 32 | 1, 9),
    "all-of-it": ring(4 * 16385 + 1, 4 * 16384 + 3),
}

def entry(path, kind):
    return bytes([len(path)]) + path + kind


NONE_SET = bytes(4)  # attributes
OVERLAY = NONE_SET + bytes([5]) + b"".join([
    entry(b"gone", b"\x04"),
    entry(b"link", b"\x02\x03new" + NONE_SET),
    entry(b"moved", b"\x03\x03old" + NONE_SET),
    entry(b"new", b"\x00\x00" + NONE_SET),
    entry(b"new/file", b"\x01\x04\x01\x00\x04text" + NONE_SET),
])
DESCRIBED = b"\x01" * 32 + struct.pack("<dQ", 2.5, 2) + b"{}"
DIFFERS = struct.pack("<QII", 4 * 4096, 1, 1) + b"\x07" * 4096 + b"\xff" * 4
LITERALS = bytes([0xF0, len(DESCRIBED) - 15]) + DESCRIBED  # as LZ4 has them

SAVED = {
    "state-empty": b"\0" + bytes(3),
    "state-packages": b"\0" + b"\x01\x09numpy 2.1" + b"\x01\x06pandas\x032.2\x02ab" + b"\0",
    "state-overlay": b"\0" + bytes(2) + b"\x01\x05/data" + OVERLAY,
    "state-overlay-climbs": b"\0" + bytes(2) + b"\x01\x05/data" + NONE_SET + b"\x01" + entry(b"../x", b"\x04"),
    "block": b"\x01" + struct.pack("<II", len(DESCRIBED), len(LITERALS)) + LITERALS,
    "contents": b"\x02" + DESCRIBED + DIFFERS,
    "contents-of-another-image": b"\x02" + bytes(32) + DESCRIBED,
    "contents-outside": b"\x02" + DESCRIBED + struct.pack("<QII", 4096, 1, 1) + bytes(4096),
    "memory": b"\x03" + bytes(5000) + b"text" * 2000,
}



def records(*bodies):
    return b"\x01" + b"".join(struct.pack("<H", len(body)) + body for body in bodies)


# As postcard has them: the number of the variant, and its fields.
DIGEST = bytes(range(16))
BEGIN = b"\0\x06isolet\0\x07" + struct.pack("<d", 1.7e12) + b"\0\x01\x05/work\0"
RUN = b"\1\2\x0a\0\4code"
EVENTS = b"\0\1" + b"\1" + b"\5\1" + struct.pack("<d", 2.5)
HAPPENED = b"\3" + bytes([len(EVENTS)]) + EVENTS
ASKED = b"\4\1" + DIGEST + b"\3\1\0"
BEGUN = b"\5\1"
ANSWERED = b"\6\1\x07\0\4Nabc"
EFFECT = b"\7" + DIGEST + b"\2\5"
REPLIED = b"\x08" + DIGEST + b"\1\x08\0\0"
PASSED = b"\x09" + b"\xff" * 9 + b"\x01"
LOADED = b"\x0a\1\1\1\x06pandas\x032.2\x02ab"
ENDED = b"\2\0\0"

JOURNAL = {
    "empty": b"\0",
    "magic": b"\0isolet journal 1\n",
    "another-version": b"\0isolet journal 9\n",
    "begin": records(BEGIN),
    "run": records(BEGIN, RUN, HAPPENED, ASKED, BEGUN, ANSWERED, ENDED),
    "files": records(BEGIN, RUN, EFFECT, REPLIED, EFFECT),
    "any-number-of-requests": records(BEGIN, RUN, PASSED),
    "too-many-requests": records(BEGIN, RUN, PASSED, PASSED),
    "packages": records(BEGIN, LOADED, RUN, ASKED, LOADED, ANSWERED),
    "not-a-record": records(BEGIN, b"\xff\xff"),
}

TARGETS = {
    "journal": JOURNAL,
    "saved": SAVED,
    "value": VALUE,
    "frame": FRAME,
    "net_rules": RULES,
    "guest_path": PATH,
    "requirement": REQUIREMENT,
    "wheel": WHEEL,
    "wire": WIRE,
    "output_ring": RING,
} | seeds_of_clients.TARGETS


def main():
    for target, seeds in TARGETS.items():
        directory = CORPUS / target
        directory.mkdir(parents=True, exist_ok=True)
        for old in directory.iterdir():
            old.unlink()
        for name, content in seeds.items():
            (directory / name).write_bytes(content)


if __name__ == "__main__":
    main()
