# Programs for each class of the advisories of 2026 about WebAssembly engines, as a guest tries it.

# %% a load whose offset overflows
# Compiles loads with an index and an offset whose sum is beyond 32 bits.
# Source: RUSTSEC-2026-0096: an address is computed wrongly, and leads out of the memory
for offset in (0, 1, 0x7FFFFFFF, 0xFFFF0000, 0xFFFFFFFF):
    body = b"\x20\x00" + b"\x41\x02\x74" + b"\x28\x02" + leb(offset)
    for index in (0, -1, -(2**31), 2**31 - 1, 0x4000, 0x3FFFFFFF):
        await tries_async(lambda: compiled(wasm(body, memory=1), index))

# %% a register with dirty upper bits
# Passes indices whose upper halves are not zero to loads, by every number that JavaScript has.
# Source: RUSTSEC-2026-0095: an index of 32 bits is used with all 64 bits of its register
body = b"\x20\x00\x28\x02\x00"
for index in (2**32, 2**32 + 4, -(2**33), 2**53 - 1, -1.5, 1e300, float("nan")):
    await tries_async(lambda: compiled(wasm(body, memory=1), index))
    tries(
        lambda: js("(i) => pyodide._module.HEAP32[i]", index),
        lambda: js("(i) => pyodide._module.getValue?.(i, 'i32')", index),
        lambda: js("(i) => pyodide._module.UTF8ToString(i, 100)", index),
        lambda: js("(i) => pyodide._module._malloc(i)", index),
        lambda: js("(i) => pyodide._module._memcpy?.(i, 0, 16)", index),
    )

# %% the number of a table that grew
# Grows tables and memories by numbers that become negative, and looks at what they then return.
# Source: RUSTSEC-2026-0094: the result of table.grow is not masked
await tries_async(*[(lambda count=count: compiled(wasm(b"\xd0\x70\x20\x00\xfc\x0f\x00", table=1), count)) for count in (0, 1, -1, 2**31 - 1, 2**31)])
tries(*[(lambda count=count: js("(n) => { const t = new WebAssembly.Table({element: 'anyfunc', initial: 1}); const was = t.grow(n); return was + ',' + t.length + ',' + t.get(t.length - 1); }", count)) for count in (0, 1, 1000, -1, 2**31, 2**32 - 1, 1e7)])
tries(*[(lambda count=count: js("(n) => { const m = new WebAssembly.Memory({initial: 1}); const b = m.buffer; const was = m.grow(n); return was + ',' + b.byteLength + ',' + m.buffer.byteLength; }", count)) for count in (0, 1, -1, 65535, 65536, 2**32 - 1)])

# %% strings that are transcoded out of bounds
# Has strings of every width written at the end of the memory, and longer than is announced.
# Source: RUSTSEC-2026-0091: a string is written beyond the memory
tries(*[(lambda code=code: js(code)) for code in (
    "(() => { const h = pyodide._module.HEAPU8; return new TextEncoder().encodeInto('\\u{10ffff}'.repeat(100), h.subarray(h.length - 3)).written; })()",
    "(() => { const m = pyodide._module; return m.stringToUTF8('é'.repeat(1e5), m.HEAPU8.length - 2, 2**31); })()",
    "(() => { const m = pyodide._module; return m.stringToUTF16?.('x'.repeat(1e5), m.HEAPU8.length - 2, 2**31); })()",
    "(() => { const m = pyodide._module; return m.stringToUTF32?.('x'.repeat(1e5), m.HEAPU8.length - 2, 2**31); })()",
    "(() => { const h = pyodide._module.HEAPU8; h.set(new Uint8Array(100), h.length - 10); })()",
    "(() => { const h = pyodide._module.HEAPU8; return h.copyWithin(h.length - 4, 0, 1e9).length; })()",
)])
tries(lambda: js("(s) => s.length", "\ud800" * 1000), lambda: js("(s) => s.normalize('NFKD').length", "ﷺ" * 100_000), lambda: js("'\\ud800'.repeat(1000)"))

# %% strings at odd addresses
# Reads strings of two and four bytes a character at addresses that are not even.
# Source: RUSTSEC-2026-0092: a string of UTF-16 at an odd address makes the host panic
for address in (1, 3, 2**31 + 1, 2**32 - 1):
    tries(
        lambda: js("(a) => pyodide._module.UTF16ToString?.(a, 100)", address),
        lambda: js("(a) => pyodide._module.UTF32ToString?.(a, 100)", address),
        lambda: js("(a) => new Uint16Array(pyodide._module.HEAPU8.buffer, a, 10).join()", address),
        lambda: js("(a) => new TextDecoder('utf-16le').decode(pyodide._module.HEAPU8.subarray(a, a + 33))", address),
    )
import ctypes
tries(lambda: ctypes.wstring_at(1025, 10), lambda: ctypes.c_wchar_p(2**31 + 1).value, lambda: ctypes.cast(1027, ctypes.POINTER(ctypes.c_double))[0])

# %% strings that are read too far
# Reads strings without an end near the end of the memory, and prints what came with them.
# Source: RUSTSEC-2026-0093: a string is read beyond the heap
import ctypes
size = js("pyodide._module.HEAPU8.length")
for before in (1, 8, 100, 65536):
    js("(a) => pyodide._module.HEAPU8.fill(65, a)", size - before)
    tries(
        lambda: found(ctypes.string_at(size - before)),
        lambda: found(js("(a) => pyodide._module.UTF8ToString(a)", size - before).encode()),
        lambda: found(js("(a) => pyodide._module.UTF8ToString(a, 2**30)", size - before).encode()),
        lambda: found(ctypes.wstring_at(size - before, 1 << 16).encode()),
        lambda: found(ctypes.string_at(size - before, 1 << 20)),
    )

# %% data that a pooled instance has left
# Makes and drops instances of the interpreter's own kind, and looks for leftovers in their memory.
# Source: RUSTSEC-2026-0088: data of an instance is left in a pooled one
for _ in range(5):
    await tries_async(lambda: compiled(wasm(b"\x20\x00\x28\x02\x00", memory=64), 4096))
tries(lambda: js("""() => {
    const found = [];
    for (let i = 0; i < 100; i++) {
        const bytes = new Uint8Array(new WebAssembly.Memory({initial: 16, maximum: 64}).buffer);
        if (bytes.some(b => b)) found.push(i);
        bytes.fill(1);
    }
    return found.join();
}""")())

# %% a load of the wrong width
# Loads vectors at the last bytes of the memory, of which only a part is there.
# Source: RUSTSEC-2026-0087: f64x2.splat loads from outside of the memory
for op in (b"\xfd\x0a", b"\xfd\x00", b"\xfd\x07", b"\xfd\x5d"):
    for index in (65535, 65529, 65528, 65536):
        await tries_async(lambda: compiled(wasm(b"\x20\x00" + op + b"\x00\x00\xfd\x1b\x00", memory=1), index))

# %% tables of 64 bits
# Makes tables and memories whose indices have 64 bits, and reads far beyond their ends.
# Source: RUSTSEC-2026-0086: a table of 64 bits leaks data of the host
tries(*[(lambda code=code: js(code)) for code in (
    "(() => { const t = new WebAssembly.Table({element: 'externref', initial: 1n, address: 'i64'}); return String(t.get(2n ** 32n)); })()",
    "(() => { const t = new WebAssembly.Table({element: 'anyfunc', initial: 10n, address: 'i64'}); return String(t.get(2n ** 63n)); })()",
    "(() => { const m = new WebAssembly.Memory({initial: 1n, address: 'i64'}); return m.grow(2n ** 32n); })()",
    "(() => { const m = new WebAssembly.Memory({initial: 2n ** 40n, address: 'i64'}); return m.buffer.byteLength; })()",
    "String(pyodide._module.wasmTable?.get(2 ** 32 - 1))",
    "(() => { const t = pyodide._module.wasmTable; const out = []; for (let i = 0; i < t.length; i++) { const f = t.get(i); if (f && !/wasm-function|^function \\d+\\(\\) \\{ \\[native code\\]/.test(String(f))) out.push(String(f).slice(0, 100)); } return t.length + out.slice(0, 20).join(); })()",
)])

# %% values outside of their type
# Passes values to exports and imports that their types do not have: flags, halves, objects.
# Source: RUSTSEC-2026-0085: a value of flags with unknown bits makes the host panic
for value in (2**40, -(2**63), 2**64 - 1, float("inf"), "x", None, b"x", [1], {"a": 1}, 1j):
    tries(
        lambda: js("(v) => pyodide._module._malloc(v)", value),
        lambda: js("(v) => pyodide._module._PyErr_SetInterrupt?.(v)", value),
        lambda: js("(v) => new WebAssembly.Global({value: 'i64', mutable: true}, v).value", value),
        lambda: js("(v) => new WebAssembly.Table({element: 'anyfunc', initial: v}).length", value),
        lambda: js("(v) => new WebAssembly.Tag({parameters: ['i32', v]})", value),
        lambda: echo(text=value),
    )

# %% a table that is filled
# Fills, copies and initialises tables beyond their ends.
# Source: RUSTSEC-2026-0089: table.fill makes the host panic
for body in (b"\x20\x00\xd0\x70\x41\x7f\xfc\x11\x00", b"\x20\x00\x41\x00\x41\x7f\xfc\x0e\x00\x00", b"\x20\x00\x25\x00\xd1"):
    for index in (0, 1, -1, 2**31):
        await tries_async(lambda: compiled(wasm(body + (b"\x41\x00" if body[-1] != 0xD1 else b""), table=1), index))
tries(*[(lambda index=index: js("(i) => { const t = pyodide._module.wasmTable; t.set(i, null); return String(t.get(i)); }", index)) for index in (-1, 2**31, 2**32 - 1)])

# %% instances that are gone
# Keeps functions and memories of instances that were dropped, and uses them after collections.
# Source: RUSTSEC-2026-0090: what a clone of a linker shares is freed too early
import gc
await tries_async(lambda: js("""async () => {
    const bytes = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 134, 0, 1, 96, 128, 0, 128, 0, 2, 7, 1, 1, 101, 1, 102, 0, 0, 7, 5, 1, 1, 102, 0, 0);
    const kept = [];
    for (let i = 0; i < 500; i++) {
        let instance = new WebAssembly.Instance(new WebAssembly.Module(bytes), {e: {f: () => kept.length}});
        kept.push(instance.exports.f);
        instance = null;
        if (i % 50 === 0) { const junk = []; for (let j = 0; j < 200; j++) junk.push(new ArrayBuffer(1 << 14)); await null; }
    }
    return kept.map(f => f()).join().length;
}""")())
for _ in range(20):
    gc.collect()

# %% a function of another type
# Calls functions through the interpreter's table with other signatures than they have.
# Source: RUSTSEC-2026-0222: types of two engines are mixed up
import ctypes
libc = ctypes.CDLL(None)
tries(
    lambda: ctypes.CFUNCTYPE(ctypes.c_longlong, ctypes.c_double)(("strlen", libc))(1.5),
    lambda: ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_int)(("malloc", libc))(2**31 - 1),
    *[(lambda address=address: ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(address)(0)) for address in (1, 2, 100, 5000, 2**31, 2**32 - 1)],
    lambda: js("(() => { const t = pyodide._module.wasmTable; return t.get(1)(1, 2, 3); })()"),
    lambda: js("(() => { const t = pyodide._module.wasmTable; t.set(1, fetch); })()"),
    lambda: js("pyodide._module.dynCall?.('jjd', 1, [1n, 2])"),
)

# %% tables without an end
# Asks for tables, memories, globals and imports beyond every address space.
# Source: RUSTSEC-2026-0114: a table beyond the address space makes the host panic
tries(*[(lambda code=code: js(code)) for code in (
    "new WebAssembly.Table({element: 'anyfunc', initial: 2**32 - 1}).length", "new WebAssembly.Table({element: 'externref', initial: 1e7}).length",
    "new WebAssembly.Memory({initial: 65536}).buffer.byteLength", "new WebAssembly.Memory({initial: 65537})",
    "(() => { const held = []; for (let i = 0; i < 1e4; i++) held.push(new WebAssembly.Memory({initial: 1, maximum: 65536})); return held.length; })()",
    "(() => { const held = []; for (let i = 0; i < 200; i++) held.push(new WebAssembly.Table({element: 'anyfunc', initial: 1e6})); return held.length; })()",
)])

# %% modules that are no modules
# Compiles modules that are broken, huge, or change while they are compiled.
import os
head = b"\0asm\1\0\0\0"
broken = [head + os.urandom(100) for _ in range(20)] + [head + b"\x01\xff\xff\xff\xff\x0f", head + b"\x0a\x80\x80\x80\x80\x10", b"\0asm\x0d\0\1\0", wasm(b"\x0b" * 10_000), wasm(b"\x02\x40" * 50_000), wasm(b"\x41\x00\x1a" * 300_000 + b"\x41\x00")]
await tries_async(*[(lambda module=module: compiled(module, 0)) for module in broken])
tries(lambda: js("""() => {
    const code = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 127, 3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0, 10, 6, 1, 4, 0, 65, 42, 11);
    const trampoline = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 134, 0, 1, 96, 128, 0, 128, 0, 2, 7, 1, 1, 101, 1, 102, 0, 0, 7, 5, 1, 1, 102, 0, 0);
    const changing = new Proxy(trampoline, {get: (t, k) => k === 'length' ? (t.set(code), 34) : Reflect.get(t, k)});
    return String(new WebAssembly.Module(changing));
}""")())

# %% stacks that are suspended
# Overflows the stack within imports, and suspends and resumes stacks out of order.
tries(lambda: js("""() => {
    const bytes = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 134, 0, 1, 96, 128, 0, 128, 0, 2, 7, 1, 1, 101, 1, 102, 0, 0, 7, 5, 1, 1, 102, 0, 0);
    const module = new WebAssembly.Module(bytes);
    let f;
    f = new WebAssembly.Instance(module, {e: {f: () => f()}}).exports.f;
    try { f(); } catch (error) { return String(error); }
}""")())
await tries_async(lambda: js("""async () => {
    const bytes = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 134, 0, 1, 96, 128, 0, 128, 0, 2, 7, 1, 1, 101, 1, 102, 0, 0, 7, 5, 1, 1, 102, 0, 0);
    const module = new WebAssembly.Module(bytes), release = [];
    const waits = new WebAssembly.Suspending(() => new Promise(r => release.push(r)));
    const all = [];
    for (let i = 0; i < 100; i++) all.push(WebAssembly.promising(new WebAssembly.Instance(module, {e: {f: waits}}).exports.f)());
    for (const r of release.reverse()) r(1);
    return (await Promise.all(all)).length;
}""")())

# %% a memory that grows under a reader
# Grows, detaches and replaces the memory of the interpreter while Python and JavaScript read it.
import ctypes, threading
views = [(ctypes.c_char * 4096).from_address(65536 * i) for i in range(1, 5)]
for pages in (1, 16, 256):
    tries(
        lambda: js("(n) => { const m = pyodide._module.wasmMemory ?? pyodide._module.HEAPU8; const old = pyodide._module.HEAPU8; m.grow?.(n); return old.length + ',' + pyodide._module.HEAPU8.length + ',' + old[0]; }", pages),
        lambda: js("(() => { const b = pyodide._module.HEAPU8.buffer; return b.transfer?.(10); })()"),
        lambda: js("structuredClone(1, {transfer: [pyodide._module.HEAPU8.buffer]})"),
        lambda: bytearray(pages << 18) and [found(bytes(view)) for view in views] and None,
    )
