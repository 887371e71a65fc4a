"""Seeds of what clients, servers, indexes and files say: `seeds.py` writes them."""

import base64
import gzip
import json
import marshal
import struct
import zlib


def plain(value):
    return marshal.dumps(value, 2)


def kinds(*groups):
    """The seeds of a target whose first byte says how the rest is read."""
    return {
        name: bytes([kind]) + (content if isinstance(content, bytes) else text(content))
        for kind, group in enumerate(groups)
        for name, content in group.items()
    }


def text(value):
    return (value if isinstance(value, str) else json.dumps(value)).encode()


def texts(seeds):
    return {name: content if isinstance(content, bytes) else text(content) for name, content in seeds.items()}


MARKERS = {
    "implementation_name": "cpython",
    "implementation_version": "3.14.2",
    "os_name": "posix",
    "platform_machine": "wasm32",
    "platform_python_implementation": "CPython",
    "platform_release": "5.0.3",
    "platform_system": "Emscripten",
    "platform_version": "#1",
    "python_full_version": "3.14.2",
    "python_version": "3.14",
    "sys_platform": "emscripten",
}


def item(name, version="1.0", **metadata):
    return {
        "metadata": {"name": name, "version": version} | metadata,
        "download_info": {"archive_info": {"hashes": {"sha256": "ab" * 32}}},
    }


def locked(name, *depends, file=None):
    return {
        "name": name,
        "file_name": file or f"{name}-1.0-py3-none-any.whl",
        "depends": depends,
        "imports": [name],
        "package_type": "package",
        "sha256": "ab" * 32,
    }


def lock(**packages):
    return {"info": {"python": "3.14.2", "abi_version": "2026_0"}, "packages": packages}


def section(number, content):
    return bytes([number, len(content)]) + content


WASM = b"\0asm\x01\0\0\0"
TYPES = section(1, b"\x01\x60\0\0")
MODULE = WASM + TYPES + section(2, b"\x01\x01a\x01f\0\0") + section(3, b"\x02\0\0")
MODULE += section(10, b"\x02\x02\0\x0b\x04\0\x41\x01\x0b")

PACKAGE_INDEX = kinds(
    {
        "report": {"install": [item("Six", requires_dist=["a; extra == 'x'"])], "environment": MARKERS},
        "report-with-extras": {"install": [item("a") | {"requested_extras": ["X_y"]}], "environment": MARKERS},
        "report-of-another-python": {"install": [], "environment": MARKERS | {"os_name": "nt"}},
        "report-without-digest": {"install": [item("a") | {"download_info": {}}], "environment": MARKERS},
        "report-of-no-name": {"install": [item("../x")], "environment": MARKERS},
    },
    {
        "reason": "ERROR: No matching distribution found for a\nERROR: ResolutionImpossible: see https://pip.example/\n",
        "reason-with-servers": "WARNING: Retrying\nERROR: Could not reach https://u:p@pypi.example/simple host='x'\n",
        "reason-long": "ERROR: " + "word " * 200,
        "crash": "Traceback\nERROR: Exception:\nOSError: \x1b[31m no\r\n",
    },
    {
        "lock": lock(a=locked("a", "b"), b=locked("b")),
        "lock-incomplete": lock(a=locked("a", "missing")),
        "lock-of-another-name": lock(a=locked("a", file="c-1.0-py3-none-any.whl")),
        "lock-of-another-python": {"info": {"python": "3.13.0", "abi_version": "x"}, "packages": {}},
    },
    {
        "module": MODULE,
        "module-without-code": WASM + TYPES,
        "module-with-a-long-number": WASM + b"\x01\x84\x80\0\x01\x60\0\0",
        "module-with-a-custom-section": MODULE + section(0, b"\x04namexyz"),
        "module-cut": MODULE[:-2],
        "component": b"\0asm\x0d\0\x01\0",
    },
)

DISPLAY = {
    "display": plain([True, {"text/plain": "x", "image/png": b"\x89PNG"}]),
    "display-of-nothing": plain([False, {}]),
    "display-of-no-format": plain([False, {"text": "x"}]),
    "display-with-a-line": plain([False, {"text/a\nb": "x"}]),
    "display-of-many": plain([False, {f"text/{n}": "" for n in range(65)}]),
    "path": b"/home/user/plot.png",
    "path-of-system": b"/proc/self/mem",
    "path-that-climbs": b"/home/../x",
    "record-forked": b"\x02" + struct.pack("<Qi", 7, 0),
    "record-unknown": b"\x09" + struct.pack("<Qi", 7, -1),
}

TEXT = b"text that is longer than a word, and again, and again, and again"
HTTP_RESPONSE = kinds(
    {
        "gzip": gzip.compress(TEXT, mtime=0),
        "gzip-of-two-members": gzip.compress(b"a", mtime=0) + gzip.compress(b"b", mtime=0),
        "gzip-cut": gzip.compress(TEXT, mtime=0)[:-3],
        "gzip-bomb": gzip.compress(bytes(1 << 20), mtime=0),
    },
    {
        "deflate-of-zlib": zlib.compress(TEXT),
        "deflate-raw": zlib.compress(TEXT)[2:-4],
        "deflate-with-more-after": zlib.compress(TEXT) + b"more",
        "deflate-bomb": zlib.compress(bytes(1 << 20)),
    },
    {
        "redirect": b"\x02/other?x\n\x03https://other.example/\n\x07//api.example.com/",
        "redirect-to-http": b"\x01http://api.example.com/",
        "redirect-to-no-url": b"\x02http://[::1",
        "redirect-to-userinfo": b"\x02https://u:p@api.example.com/#y",
    },
)

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "A name."},
        "from": {"type": ["integer", "null"]},
        "kind": {"enum": ["a", "b\n\"\"\"", 3]},
        "items": {"type": "array", "items": {"$ref": "#/$defs/item"}},
    },
    "required": ["name"],
    "$defs": {"item": {"anyOf": [{"type": "number"}, {"$ref": "#/properties/items"}]}},
}
ARGUMENTS = plain({"given": {"name": "x", "items": [1, [2.5]]}, "more": {"k": {"name": "y"}}})
TOOL_SCHEMA = {
    "object": text(SCHEMA) + b"\xff" + ARGUMENTS,
    "object-and-other-arguments": text(SCHEMA) + b"\xff" + plain({"given": 3, 4: 5}),
    "reference-to-itself": text({"$ref": "#"}) + b"\xff" + ARGUMENTS,
    "all-of": text({"allOf": [SCHEMA, {"properties": {"x": {"const": None}}, "additionalProperties": False}]}),
    "tuple": text({"prefixItems": [{"type": "boolean"}], "items": {"type": "string"}, "type": "array"}),
    "text-that-ends-a-text": text('"""\nimport os\n"""'),
    "names-of-python": text({"type": "object", "properties": {"class": {}, "a b": {"title": "x\ny"}}}),
}


def message(**fields):
    return text({"jsonrpc": "2.0"} | fields)


RESULT = {"content": [{"type": "text", "text": '{"a": [1, 2.5]}'}]}
TOOL = {"name": "get-sum", "description": "Adds.<!-- x -->", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}}
MCP_UPSTREAM = kinds(
    {
        "lines": message(id=7, result=RESULT) + b"\nnoise\n" + message(id="8", result={"tools": [TOOL]}),
        "line-with-a-half": b'{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"\\ud83d"}]}}',
        "line-without-id": message(error={"code": -32700, "message": "what?"}),
        "line-of-a-request": message(id=1, method="ping") + b"\n" + b'{"method":"x","id":3,"params":NaN}',
        "line-too-long": message(id=7, result={"x": "x" * 5000}),
        "line-incomplete": b'{"id":7,"error":{"message":"no"}}',
    },
    {
        "body": message(id=99, result=RESULT),
        "body-of-an-error": message(id=7, error={"code": 1, "message": "no"}),
        "body-of-no-answer": message(method="notifications/progress"),
        "body-of-many-values": b"[" + b"0," * 1500 + b"0]",
    },
    {
        "events": b"event: message\ndata: " + message(id=7, result=RESULT) + b"\n\n: ping\n\nevent: x\ndata: y\n\n",
        "events-of-windows": b"id: 1\r\ndata: " + message(method="notifications/progress") + b"\r\n\r\n",
        "event-in-lines": b'data: {"jsonrpc":"2.0",\ndata: "id":8,"result":{"tools":[]}}\n\nretry: 5\n\n',
        "event-too-long": b"data: " + b"x" * 2100 + b"\n\n",
        "event-not-utf8": b"data: \xff\n\n",
    },
    {"stray-events": b"data: " + message(method="notifications/tools/list_changed") + b"\n\n"},
)

CALL = {"name": "run_python", "arguments": {"code": "1", "session": "None", "timeout": "10s", "limit": 0, "x": 1}}
MCP_SERVER = texts(
    {
        "initialize": message(
            id=1,
            method="initialize",
            params={"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}},
        ),
        "call": message(id=2, method="tools/call", params=CALL),
        "call-with-text": message(id=2, method="tools/call", params={"name": "run_python", "arguments": '{"code": "1"}'}),
        "call-without-name": message(id="a", method="tools/call", params={"arguments": []}),
        "notification": message(method="notifications/initialized"),
        "batch": [{"id": 1, "method": "ping"}, {"id": None, "method": "x"}, 3],
        "answer": message(id=5, result={"action": "accept", "content": {"x": True}}),
        "answer-unreadable": b'{"id":5,"result":NaN}',
        "no-object": "hello",
        "half-of-a-pair": b'{"jsonrpc":"2.0","id":"\\udc00","method":"ping"}',
        "params-of-another-kind": message(id=3, method="resources/read", params=[1]),
    }
)

MCP_TOOL = kinds(
    {
        "tool": TOOL,
        "tool-with-output": TOOL | {"outputSchema": {"type": "object", "x-fastmcp-wrap-result": True}},
        "tool-of-hidden-letters": TOOL | {"name": "a\u200bb", "description": "\u202eabc\x1b[31m"},
        "tool-of-nothing": {"name": "x", "inputSchema": 3},
    },
    {
        "result": RESULT,
        "result-structured": RESULT | {"structuredContent": {"result": {"a": [None, 1, "x"]}}},
        "result-of-an-error": RESULT | {"isError": True},
        "result-of-blocks": {
            "content": [
                {"type": "image", "data": base64.b64encode(b"x").decode(), "mimeType": "image/png"},
                {"type": "audio", "data": "?", "mimeType": "a"},
                {"type": "resource", "resource": {"uri": "a:b", "text": "x"}},
                {"type": "resource_link", "uri": "a:b", "name": "c", "size": 3},
            ]
        },
    },
    {"names": ["get-sum", "getSum", "get_sum", "from", "", "HTTPServer", "größe", "a" * 80, "json"]},
)

SERVERS = {
    "files": {"command": "mcp-server-files", "args": ["${HOME}", "${env:KEY}"], "env": {"A": "${X:-y}"}},
    "web": {"type": "http", "url": "https://mcp.example/?k=${KEY}", "headers": {"Authorization": "Bearer ${KEY}"}},
}
RULES = {"allow": ["read_*"], "deny": ["x"], "timeout": "30s", "maxCalls": 5}
MCP_CONFIG = texts(
    {
        "servers": {"mcpServers": SERVERS},
        "servers-of-vscode": {"servers": SERVERS, "inputs": []},
        "comments": '{// one\n"mcpServers": {/* two */ "a": {"command": "b",},},}',
        "rules": {"mcpServers": {"a": {"command": "b", "isolet": RULES}}},
        "rule-unknown": {"mcpServers": {"a": {"command": "b", "isolet": {"alow": []}}}},
        "isolet-itself": {"mcpServers": {"a": {"command": "isolet", "args": ["mcp"]}}},
        "command-in-a-variable": {"mcpServers": {"a": {"command": "${command:date}"}}},
        "variable-unclosed": {"mcpServers": {"a": {"command": "${KEY"}}},
        "no-servers": {"other": {}},
    }
)


def framed(content):
    return struct.pack("<I", len(content)) + content


RUN = ["run", 3, 1, "1 + 1", {"x": 1}, {"timeout": 2.5, "stdin": "in", "argv": ["a"]}]
SANDBOX = ["sandbox", 2, 1, {"tools": [{"name": "f"}], "limits": {"run_time": 1}, "allow_net": ["a.example"]}]
SERVE_FRAME = kinds(
    {
        "hello": ["hello", 1, {"protocol": 1, "client": "x"}],
        "sandbox": SANDBOX,
        "run": RUN,
        "values": ["answer", 4, {"$bytes": "AA=="}, {"$float": "nan"}, {"$dict": [[1, None]]}],
        "session-recorded": ["session", 6, 2, 1, None, {"path": "/j", "sync": "always", "max_bytes": 1 << 30}],
        "resume": ["resume", 7, 3, 1, {"path": "/j"}],
        "go-on": ["go_on", 8, 3, {"stream": True}],
        "replay": ["replay", 9, 4, 1, "/j", {"until_time": 2.5}],
        "number-only": b'["run", 5, NaN]',
        "half-of-a-pair": b'["run", 5, 1, "\\ud800"]',
    },
    {"marshal-run": plain(RUN), "marshal-sandbox": plain(SANDBOX), "marshal-cut": plain(RUN)[:-2]},
    {
        "frames": framed(text(RUN)) + framed(text(["close", 9, 1])),
        "frame-of-nothing": framed(b""),
        "frame-of-false-length": struct.pack("<I", 1 << 29) + b"[",
        "frame-cut": framed(text(RUN))[:-1],
    },
    {"marshal-frames": framed(plain(["fail", 4, "ValueError", "no"])) + framed(plain(["shutdown", 10]))},
)

HTTP_BODY = kinds(
    {
        "session": {"policy": SANDBOX[3], "ttl": 60, "metadata": {"a": 1}},
        "run": {"code": "1", "inputs": {"x": {"$bytes": "AA=="}}, "timeout": 1},
        "tool-result": {"value": 1, "error": {"type": "E", "message": "m", "exceptions": [{"message": "n"}]}},
        "sandbox-of-e2b": {"templateID": "base", "timeout": 5, "envVars": {"A": "b"}, "network": {"denyOut": []}},
        "list": [1],
        "nothing": b"",
    },
    {"lines": b'{"id": 1, "code": "1"}\n\n \n{"code": 2}\r\n[1]\n{"id": "x"', "newlines": b"\n" * 50},
    {
        "message": {"type": "run", "id": 4, "code": "1"},
        "message-without-type": {"id": "x"},
        "message-unreadable": b'{"id": 7, "type": NaN',
        "message-of-two-types": b'{"id": 7, "type": "run", "type": "get", "code": "1"}',
    },
    {
        "run-code": {"code": "1", "language": "python", "run_timeout": "5", "files": {"a": None}},
        "notebook": {"cells": ["1"], "cell_timeout": "null", "files": {}},
        "execute": {"generated_code": "1", "timeout": " 2.5 ", "max_output_characters": "10"},
        "program-of-librechat": {"lang": "py", "code": "1", "args": ["a"], "files": [{"id": "f", "name": "a/b"}]},
        "tools-of-librechat": {
            "code": "1",
            "tools": [{"name": "a-b", "parameters": {"properties": {"from": {}}, "required": ["x"]}}],
            "tool_results": [{"call_id": "call_001", "result": {"a": [1]}, "is_error": False}],
        },
        "sandbox-of-opensandbox": {
            "timeout": None,
            "networkPolicy": {"defaultAction": "deny", "egress": [{"action": "allow", "target": "a.example"}]},
        },
        "command-of-opensandbox": {"argv": ["a"], "background": True, "timeout": 5, "envs": {"A": "b"}},
    },
    {
        "step": {"action": {"code": "1"}, "timeout_s": 1.5},
        "environment-message": {"type": "step", "data": {"code": "1"}},
    },
    {"path": "a/./b//../c", "path-of-home": "~/x", "path-above": "/../../etc/passwd"},
    {"bearer": b"Bearer key\n\ntoken", "basic": b"Basic " + base64.b64encode(b"user:") + b"\nkey", "no-scheme": b"key"},
)

LINES = b'{"jsonrpc":"2.0","id":7,"params":{"id":1}}\n' + b'{"x":"' + b"y" * 400 + b'","id":"a","method":"m"}\r\n\nend'
JSON_RPC = texts(
    {
        "lines": LINES,
        "half-of-a-pair": b'"\\ud83d\\ud83d\\ude00\\u0041 \\\\ud83d"',
        "mark": b"\xef\xbb\xbf{}",
        "not-utf8": b'{"id":1,"x":"\xff"}',
        "unquoted": b'{"method" "id" :7, params: [}',
        "answer": {"id": "a", "result": {"method": 1}},
        "id-of-a-float": b'{"id":1.5,"jsonrpc":2}',
    }
)

JSON_TEXT = texts(
    {
        "values": {"a": [1, -0, 2.5e3, None, True, "\u00e9\n\ud83d\ude00"], "b": {"": 10**30}},
        "key-twice": b'{"a":1,"a":2}',
        "numbers": b"[1e400, -0.0, 0.1, 123456789012345678901234567890, 1E+2]",
        "escapes": b'"\\u0000\\/\\b\\f\\ud83d\\ude00\\ud800"',
        "deep": b"[" * 130,
        "odd-characters": "\u202e\u2028\ufeff\U000e0041".join('"x"'),
        "space": b" \t\r\n[ ]\x0b",
    }
)

TERMINAL = texts(
    {
        "colours": "\x1b[1;31mred\x1b[0m \x1b[38:2::1:2:3mx",
        "progress": "a\nb\n\x1b[2A\x1b[Kc\r\x1b[1Kd\x08",
        "up-too-far": "\x1b[9999A\x1b[Ax",
        "link": "\x1b]8;;https://a.example\x07text\x1b]8;;\x1b\\",
        "title": "\x1b]0;title\x07\x1b[2J\x1b[?25l\x1b[5n\x9b1m",
        "sequence-cut": b"x\x1b[3",
        "letter-cut": b"x\xf0\x9f\x98",
        "direction": "\u202eabc\u2066\U000e0041\x00\x85",
    }
)


def png(width, height, rows, colour=2, depth=8, more=b""):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    data = zlib.compress(rows)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + more + chunk(b"IDAT", data) + chunk(b"IEND", b"")


TABLE = "<table><tr><th>a<th colspan=2>b</tr><tr><td rowspan=2>1<td>2.5<td>x</tr><tr><td>3</tr></table>"
SHOWN = kinds(
    {
        "table": TABLE,
        "table-and-text": f"<style>x</style><p>shape: (2, 3)</p>{TABLE}<script>1</script>",
        "table-in-a-table": f"<table><tr><td>{TABLE}</table>",
        "table-of-wide-cells": "<table><td colspan=999 rowspan=999>x<td>y</table>",
        "table-with-controls": "<table><td>\x1b[31m&#27;[2J\u202ex</table>",
    },
    {
        "picture": png(2, 2, b"\0" + bytes(range(6)) + b"\1" + bytes(6)),
        "picture-of-grey": png(3, 1, b"\0abc", colour=0),
        "picture-with-transparency": png(1, 1, b"\0abcd", colour=6),
        "picture-that-is-wide": png(100, 1, b"\0" + bytes(300)),
        "picture-that-is-high": png(1, 3000, b"\0abc" * 3000),
        "picture-of-a-false-size": png(1 << 20, 1 << 20, b"\0"),
    },
)

CELL = {"cell_type": "code", "source": ["a = 1\n", "a"], "metadata": {"tags": ["skip-execution"]}}
NOTEBOOK = {
    name: bytes([kind]) + text(content)
    for name, kind, content in [
        ("html", 0, "<table class=\"x\"><td align=\"left\">1</td></table>"),
        ("html-with-style", 0, "<style scoped>td { color: red }</style><b style=\"color: blue\">x</b>"),
        ("html-with-a-picture", 0, "<img src=\"data:image/png;base64,AA==\"><a href=\"https://a.example\">x</a>"),
        ("html-that-loads", 0, "<img src=x onerror=1><svg/onload=1><link rel=x href=//a>"),
        ("html-that-escapes", 0, "<b style=\"background: u\\72l(x)\">&#106;</b>"),
        ("html-with-odd-spaces", 0, "<p\v title=\"a\"><p\u00a0title=\"a onclick=b \">"),
        ("svg", 1, "<svg><path d=\"M0 0\"/><use href=\"#a\"/></svg>"),
        ("svg-that-loads", 1, "<svg><image href=\"//a\"/></svg>"),
        ("markdown", 2, "# x\n![y](//a)"),
        ("latex", 3, "$\\href{//a}{x}$"),
        ("picture", 5, "AA=="),
        ("json", 7, {"$schema": "https://x", "data": {"url": "//a"}}),
        ("notebook", 8, {"nbformat": 4, "metadata": {}, "cells": [CELL, {"cell_type": "markdown", "source": "x"}]}),
        ("notebook-of-julia", 8, {"nbformat": 4, "metadata": {"kernelspec": {"language": "julia"}}, "cells": []}),
        ("notebook-of-another-format", 8, {"nbformat": 3, "worksheets": []}),
    ]
}

DSPY = texts(
    {
        "execute": message(id=1, method="execute", params={"code": "1"}),
        "register": message(
            id=2,
            method="register",
            params={
                "tools": ["f", {"name": "g", "parameters": [{"name": "x", "type": "int", "default": None}, {"name": "y"}]}],
                "outputs": [{"name": "z", "type": "list"}],
            },
        ),
        "answer": message(id="t1", result={"value": "{\"a\": 1}", "type": "json"}),
        "failure": message(id="t1", error={"message": "no", "data": {"type": "KeyError"}}),
        "id-of-any-kind": message(id={"a": [1.5]}, method="sync_file", params={"host_path": "/x"}),
    }
)


def field(number, content):
    if isinstance(content, int):
        return bytes([number << 3, content])
    return bytes([number << 3 | 2, len(content)]) + content


MONTY = kinds(
    {
        "configure": field(1, field(2, b"0.1") + field(3, 6)),
        "feed": field(3, field(1, b"1 + 1") + field(3, field(1, 2) + field(2, field(4, 5)) + field(2, field(2, b"")))),
        "resume": field(4, field(1, 1) + field(2, field(1, 0))),
        "shutdown": field(10, b""),
        "wrong-type": b"\x08\xff\xff\xff\xff\x0f",
    },
    {
        "nodes": plain([None, 1, 2**70, 2.5, "x", b"y", ["list", 0, 1], ["dict", 4, 6], ["date", 2026, 1, 2]]),
        "nodes-that-refer-ahead": plain([["tuple", 3]]),
        "question": plain(["call", "f", [0], [[0, 0]], [1, "k"], None, None]),
        "question-of-the-system": plain(["system", "open", ["/x", "r"], None]),
        "exception": plain(["unicode", "utf-8", b"\xff", 0, 1, "no"]),
    },
)

CLIENT_CONFIG = kinds(
    {
        "json": '{\n  // mine\n  "mcpServers": {\n    "a": {"command": "b"},\n  },\n  "x": 1\n}\n',
        "json-of-nothing": "",
        "json-with-isolet": {"mcpServers": {"isolet": {"command": "old"}, "b": {}}},
        "json-with-halves": b'{"x": "\\ud83d", "mcpServers": {}}',
        "json-twice": '{"mcpServers": {"a": {}}, "mcpServers": {}}',
    },
    {
        "toml": '# mine\nmodel = "x"\n\n[mcp_servers.a]\ncommand = "b"\n\n[other]\ny = 1\n',
        "toml-inline": 'mcp_servers = { a = { command = "b" }, isolet = {} }\r\n',
        "toml-dotted": 'mcp_servers.a.command = "b"\n[mcp_servers.isolet.env]\nA = "b"\n',
        "toml-of-lists": "[[mcp_servers.a.b]]\nx = 1\n[mcp_servers.isolet]\n# c\n[z]\n",
        "toml-of-another-kind": "mcp_servers = 3\n",
    },
)

SKILL = texts(
    {
        "plain": "---\nname: a\ndescription: Makes a report.\n---\n\n# Reports\n",
        "all-fields": (
            "---\nname: make-pdf\ndescription: >-\n  Makes a PDF.\n  Use it for PDFs.\nlicense: MIT\n"
            'compatibility: Python 3, internet access\nmetadata:\n  version: "1.0"\n'
            "allowed-tools: Bash(git diff:*) Read\n---\n# How\n\n---\nmore\n"
        ),
        "lists-and-anchors": (
            "---\nname: a\ndescription: &d Long text.\ncompatibility: *d\n"
            "metadata: {version: '1', other: x}\nallowed-tools: [WebFetch, Read]\n---\n"
        ),
        "expanding-anchors": (
            "---\na: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\n"
            "c: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nname: a\ndescription: x\nmetadata: {d: *c}\n---\n"
        ),
        "wrong-name": "---\nname: A--b\ndescription: x\n---\n",
        "without-end": "---\nname: a\ndescription: x\n",
    }
)


def zmtp(*frames, flags=0):
    """A message of ZMTP."""
    sizes = [b"%c%c" % (flags | (at < len(frames) - 1), len(frame)) for at, frame in enumerate(frames)]
    return b"".join(size + frame for size, frame in zip(sizes, frames))


def jupyter(kind, **content):
    header = {"msg_id": "1", "msg_type": kind, "session": "a", "version": "5.3"}
    return b"\0".join([text(header), b"{}", text(content), b"buffer"])


READY = b"\x05READY\x0bSocket-Type\0\0\0\x06DEALER\x08Identity\0\0\0\x02me"
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\0NULL" + bytes(48)
JUPYTER = kinds(
    {
        "greeting": GREETING + zmtp(READY, flags=4),
        "greeting-of-http": b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" + bytes(60),
        "greeting-cut": GREETING + zmtp(READY[:20], flags=4),
    },
    {
        "messages": zmtp(b"<IDS|MSG>", b"", b"{}") + zmtp(b"ping") + zmtp(b"", b""),
        "frame-too-long": b"\x02" + struct.pack(">Q", 1 << 62),
        "frame-long": b"\x02" + struct.pack(">Q", 300) + b"x" * 300,
        "command": zmtp(READY, flags=4) + zmtp(b"a"),
    },
    {
        "execute": jupyter("execute_request", code="1", silent=False, user_expressions={"a": "1"}),
        "complete": jupyter("complete_request", code="di", cursor_pos=2),
        "history": jupyter("history_request", hist_access_type="search", pattern="c*?", n=2),
        "history-range": jupyter("history_request", hist_access_type="range", start=-1, stop=2),
        "comm": jupyter("comm_msg", comm_id="a", data={"method": "update"}),
        "input": jupyter("input_reply", value="x"),
    },
)


TARGETS = {
    "client_config": CLIENT_CONFIG,
    "display": DISPLAY,
    "dspy": DSPY,
    "http_body": HTTP_BODY,
    "http_response": HTTP_RESPONSE,
    "json_rpc": JSON_RPC,
    "jupyter": JUPYTER,
    "json_text": JSON_TEXT,
    "mcp_config": MCP_CONFIG,
    "skill": SKILL,
    "mcp_server": MCP_SERVER,
    "mcp_tool": MCP_TOOL,
    "mcp_upstream": MCP_UPSTREAM,
    "monty": MONTY,
    "notebook": NOTEBOOK,
    "package_index": PACKAGE_INDEX,
    "serve_frame": SERVE_FRAME,
    "shown": SHOWN,
    "terminal": TERMINAL,
    "tool_schema": TOOL_SCHEMA,
}
