# Programs that look for what the environment of the host has.

# %% the environment
# Reads variables of the host by every getter.
# Source: SandboxBench: discovery of a secret in the environment
import ctypes, os, posix, sys, sysconfig
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
tries(
    lambda: os.environ[T.variable],
    lambda: os.getenv(T.variable),
    lambda: dict(os.environb),
    lambda: posix.environ,
    lambda: libc.getenv(T.variable.encode()),
    lambda: libc.secure_getenv(T.variable.encode()),
    lambda: [ctypes.c_char_p.in_dll(libc, "environ"), ctypes.c_char_p.in_dll(libc, "__environ")],
    lambda: os.path.expandvars("$" + T.variable),
    lambda: os.reload_environ() or os.environ[T.variable],
    lambda: open("/proc/self/environ").read(),
    lambda: js("Object.keys(globalThis).concat(Object.keys(pyodide._module?.ENV ?? {})).join()"),
    lambda: js("(n) => (globalThis.process?.env ?? globalThis.Deno?.env?.toObject?.() ?? pyodide._module.ENV)[n]", T.variable),
    lambda: (sys.argv, sys.orig_argv, sys.executable, sys.flags, sysconfig.get_config_vars()),
)

# %% variables of JavaScript runtimes
# Asks the interfaces of Node, Deno and Bun for the environment.
# Source: the escapes of Pyodide from Node (CVE-2025-68668, CVE-2026-24002, CVE-2026-5752)
for code in (
    "process.env", "globalThis.process.mainModule.require('child_process').execSync('env').toString()",
    "process.binding('spawn_sync')", "require('fs').readFileSync('/proc/self/environ', 'utf8')",
    "Deno.env.toObject()", "Deno.readTextFileSync('/proc/self/environ')", "Deno.core.ops.op_get_env('HOME')",
    "Deno[Deno.internal].core.ops", "Deno.core.print('x')", "Bun.env", "Bun.file('/etc/passwd').text()",
    "import.meta.env", "importScripts('/etc/passwd')", "new Function('return process')().env",
    "(async () => {}).constructor('return process.env')()", "globalThis.constructor.constructor('return process.env')()",
    "this.constructor.constructor('return this.process.env')()", "Error.prepareStackTrace = (e, s) => s.map(f => String(f.getThis?.()?.process)); new Error().stack",
):
    tries(lambda: js(code))

# %% credentials in their usual places
# Reads the files in which people keep keys, tokens and histories.
# Source: SandboxBench: discovery of credentials in a home directory
import os
for home in (os.path.expanduser("~"), "/root", "/home/user", "/home/ubuntu", T.directory):
    for name in (".ssh/id_rsa", ".aws/credentials", ".netrc", ".git-credentials", ".bash_history", ".docker/config.json", ".config/gcloud/credentials.db", ".pypirc", ".npmrc", ".env"):
        tries(lambda: open(os.path.join(home, name)).read())
tries(*[(lambda path=path: open(path).read()) for path in ("/etc/passwd", "/etc/shadow", "/etc/hostname", "/etc/machine-id", "/run/secrets", "/proc/1/environ", "/proc/keys")])

# %% what the embedding program was told
# Looks for arguments, settings and inputs of the host in the modules of isolet and Pyodide.
import gc, sys
gc.unfreeze()
def look(name, thing):
    try:
        text = repr(vars(thing))
    except Exception as error:
        text = str(error)
    if T.prefix in text.replace(repr(T.prefix), ""):
        said(name + text)
for name, module in list(sys.modules.items()):
    look(name, module)
for thing in gc.get_objects():
    if isinstance(thing, (str, bytes)) or (isinstance(thing, dict) and len(thing) < 1000):
        try:
            text = str(thing)
        except Exception:
            continue
        if text.count(T.prefix) and "-" in text:
            found(text.encode("utf-8", "replace"))
