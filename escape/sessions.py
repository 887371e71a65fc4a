# Programs that look for another session of the same sandbox.

# %% names and files of another session
# Looks for the variable and the file that the other session has.
# Source: SandboxBench: discovery of another user's files
import builtins, gc, os, sys
tries(lambda: secret, lambda: open("/tmp/secret").read(), lambda: builtins.secret, lambda: sys.modules["__main__"].secret, lambda: os.listdir("/tmp"), lambda: os.listdir("/dev/shm"))
for path in ("/tmp", "/home", "/home/user", "/dev/shm", "/var", "/run", "/data", "/proc/1/root/tmp", f"/proc/{T.worker}/root/tmp"):
    for root, _, files in os.walk(path):
        for name in files:
            tries(lambda: found(open(os.path.join(root, name), "rb").read(), name))
gc.unfreeze()
for thing in gc.get_objects():
    if isinstance(thing, dict) and "secret" in thing:
        said(thing["secret"])

# %% shared memory
# Opens shared memory, semaphores, queues and locks by the names that others may have used.
# Source: SandboxEscapeBench: the host's IPC namespace
import ctypes, mmap, os
libc = ctypes.CDLL(None)
tries(
    lambda: __import__("multiprocessing.shared_memory").shared_memory.SharedMemory(name="secret"),
    lambda: __import__("_posixshmem").shm_open("/secret", os.O_RDWR),
    lambda: libc.shm_open(b"/secret", 2, 0o600),
    *[(lambda number=number: libc.shmat(number, 0, 0)) for number in range(8)],
    lambda: libc.mq_open(b"/secret", 2),
    lambda: libc.sem_open(b"/secret", 0),
    lambda: libc.syscall(29, 1, 4096, 0o666),
    lambda: found(mmap.mmap(-1, 1 << 20, flags=mmap.MAP_SHARED)[:]),
    lambda: os.open("/dev/shm", os.O_RDONLY),
)

# %% channels between realms
# Sends messages by every name by which JavaScript could reach another session.
tries(*[(lambda code=code: js(code)) for code in (
    "new BroadcastChannel('secret').postMessage(1)", "Object.keys(localStorage).join()", "sessionStorage.getItem('secret')", "indexedDB.open('secret')", "caches.open('secret')",
    "Symbol.for('secret').description + Object.getOwnPropertySymbols(globalThis).length", "navigator.locks.request('secret', () => 1)", "globalThis.secret", "document.cookie", "navigator.storage",
    "new SharedWorker('secret')", "top.secret", "parent.secret", "opener.secret", "frames.length", "globalThis.caches",
)])

# %% calls of another session
# Answers, cancels and reads calls, requests and files by numbers that another session may have.
import gc
from pyodide.ffi import JsProxy
gc.unfreeze()
functions = [thing for holder in gc.get_objects() for thing in gc.get_referents(holder) if isinstance(thing, JsProxy) and thing.typeof == "function" and thing.name not in ("is_kept", "foreign")]
buffer = js("new Uint8Array(4096)")
for number in [*range(6), 2**16, 2**31 - 1, 2**32 - 1]:
    for function in functions:
        for given in ((number,), (number, 0), (number, 0, buffer), (number, number, 4096), (0, number, buffer)):
            try:
                result = function(*given)
                if T.prefix in str(result):
                    said(result)
            except BaseException:
                pass
    tries(lambda: found(buffer.to_bytes()))

# %% random numbers of another session
# Predicts the random names and tokens that another session gets.
import hashlib, os, random, secrets, tempfile, uuid
print(random.random(), secrets.token_hex(4), uuid.uuid4(), tempfile.mktemp(), js("Math.random()"), hash("secret"))
for seed in range(200):
    name = "".join(random.Random(seed).choices("abcdefghijklmnopqrstuvwxyz0123456789_", k=8))
    tries(lambda: found(open("/tmp/tmp" + name, "rb").read())) if os.path.exists("/tmp/tmp" + name) else None

# %% what stays behind
# Looks for what an earlier session could have left in the standard library, caches and modules.
import importlib, os, sys, zipfile
tries(
    lambda: found(open(next(p for p in sys.path if p.endswith(".zip")), "rb").read()),
    lambda: [found(open(os.path.join(r, f), "rb").read(), f) for r, _, fs in os.walk("/lib") for f in fs if f.endswith((".pyc", ".tmp"))] and None,
    lambda: __import__("planted"),
    lambda: sys.path_importer_cache.keys(),
    lambda: js("Object.keys(pyodide.loadedPackages).join()"),
)

# %% a session out of time
# Fills its memory, its output and its time, and looks whether an error tells of others.
# Source: SandboxBench: a host that tells of itself when it runs out of something
import sys
block = []
try:
    while True:
        block.append(bytearray(1 << 24))
except MemoryError as error:
    print(error, len(block))
block.clear()
tries(lambda: js("(() => { const a = []; for (let i = 0; i < 60; i++) a.push(new ArrayBuffer(1 << 22)); return a.length; })()"))
sys.stdout.write(("x" * 999 + "\n") * 20_000)
while True:
    try:
        while True:
            pass
    except BaseException as error:
        print(type(error).__name__, error, vars(error))

# %% the heap of V8 filled
# Fills the heap of JavaScript, so that V8 ends the isolate, or its process, in the middle of work.
js("(() => { const held = []; for (;;) held.push(new Array(1e6).fill(held.length + 0.5)); })()")

# %% a process that dies
# Ends the interpreter by a fault in the middle of a call, and leaves it to whoever cleans up.
import ctypes, faulthandler, os
try:
    ctypes.memset(1024, 255, js("pyodide._module.HEAPU8.length") - 1024)
except BaseException as error:
    print(error)
faulthandler._sigabrt()
