# What every program begins with: where the flags are, and how to say what an attempt gives.
import base64 as _base64
import json as _json
import types as _types

T = _types.SimpleNamespace(**_json.loads(target))
URL = f"http://127.0.0.1:{T.port}/flag"


def said(what, limit=200_000):
    """Prints anything, bytes as text and as base64."""
    if isinstance(what, (bytes, bytearray, memoryview)):
        what = bytes(what)[:limit]
        print(what.decode("latin-1"), _base64.b64encode(what).decode())
    else:
        print(repr(what)[:limit], str(what)[:limit])


def tries(*attempts):
    """Makes each attempt, whatever became of the others."""
    for number, attempt in enumerate(attempts):
        try:
            said(attempt())
        except BaseException as error:
            print(number, type(error).__name__, str(error)[:300])


async def tries_async(*attempts):
    """Makes each attempt that is awaited, each for a second."""
    import asyncio

    for number, attempt in enumerate(attempts):
        try:
            made = attempt()
            if hasattr(made, "__await__") or hasattr(made, "then"):
                made = await asyncio.wait_for(made, 1)
            said(made)
        except BaseException as error:
            print(number, type(error).__name__, str(error)[:300])


def found(memory, where=""):
    """Prints what is around each flag in some bytes, apart from its beginning alone."""
    memory, at = bytes(memory), -1
    for _ in range(1000):
        at = memory.find(T.prefix.encode(), at + 1)
        if at < 0:
            return
        print(where, at)
        said(memory[max(0, at - 16) : at + 80])


def js(code, *arguments):
    """Runs JavaScript, and gives its result as a text."""
    import js
    import pyodide_js
    from pyodide.code import run_js

    js.pyodide = pyodide_js
    result = run_js(code)
    return result(*arguments) if arguments else result


def leb(number):
    """Encodes a number as WebAssembly does, unsigned."""
    out = bytearray()
    while True:
        number, low = number >> 7, number & 0x7F
        out.append(low | (0x80 if number else 0))
        if not number:
            return bytes(out)


def wasm(body, memory=0, table=0):
    """Makes a module with a function `f` of an i32 that gives an i32, with this code."""

    def section(number, content):
        return bytes([number]) + leb(len(content)) + content

    code = b"\x00" + body + b"\x0b"
    return b"".join(
        [
            b"\0asm\1\0\0\0",
            section(1, b"\x01\x60\x01\x7f\x01\x7f"),
            section(3, b"\x01\x00"),
            section(4, b"\x01\x70\x00" + leb(table)) if table else b"",
            section(5, b"\x01\x00" + leb(memory)) if memory else b"",
            section(7, b"\x01\x01f\x00\x00"),
            section(10, b"\x01" + leb(len(code)) + code),
        ]
    )


def compiled(module, argument):
    """Compiles a module in every way that JavaScript has, and calls its function."""
    from pyodide.ffi import to_js

    return js(
        """async (bytes, argument) => {
            const ways = [
                () => new WebAssembly.Instance(new WebAssembly.Module(bytes)),
                () => WebAssembly.instantiate(bytes).then((made) => made.instance),
                () => WebAssembly.instantiateStreaming(new Response(bytes)).then((made) => made.instance),
                () => Reflect.construct(WebAssembly.Instance, [Reflect.construct(WebAssembly.Module, [bytes])]),
            ];
            const said = [];
            for (const way of ways) {
                try { said.push('RAN ' + String((await way()).exports.f(argument))); } catch (error) { said.push(String(error).slice(0, 80)); }
            }
            return said.join('; ');
        }""",
        to_js(module),
        argument,
    )
