# Collects every JavaScript object that guest Python holds anywhere, and has census.js walk from
# them. `walker`, `collector`, `isolet` and `pyodide` are set by the test.
import gc

import ctypes, _pyodide_core  # noqa: E401, F401 - so that what they hold is held
import pyodide_js
from pyodide.code import run_js
from pyodide.ffi import JsProxy, to_js


def name_of(proxy):
    kind = proxy.typeof
    return f"{kind} {getattr(proxy, 'name', '')}".strip() if kind == "function" else kind


def held_by_python():
    held = (o for holder in gc.get_objects() for o in gc.get_referents(holder))
    found = {o.js_id: o for o in held if isinstance(o, JsProxy)}
    return sorted(([f"Python's {name_of(proxy)}", proxy] for proxy in found.values()), key=lambda r: r[0])


walk, collect = run_js(f"({walker})"), run_js(f"({collector})")
CHECKER = "(PyProxy) => (value) => value instanceof PyProxy"
is_proxy = run_js(CHECKER)(pyodide_js.ffi.PyProxy)
roots = await collect()
roots.push(to_js(["pyodide_js", pyodide_js]))
roots.push(*(to_js(root) for root in held_by_python()))
walk(roots, is_proxy, isolet, pyodide + walker + collector + CHECKER)
