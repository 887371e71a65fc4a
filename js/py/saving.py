"""Before a session is saved: whether it can be, and what stands in the way. After: it goes on.

What is not in Python's memory cannot be saved: stacks of threads, connections, objects of
JavaScript.
"""

import asyncio
import gc
import sys
import types

import _isolet_exchange as exchange
import _isolet_threads as threads
import _isolet_waits as waits
from pyodide.ffi import JsProxy

MAX_LOOKED_AT = 200_000  # objects, in the search for who holds one of JavaScript's
SKIPPED = (types.ModuleType, type, str, bytes, int, float)

bridge = None


def attach(host_bridge):
    """Connects a restored interpreter to its host."""
    global bridge
    bridge = host_bridge


def begin():
    """Has the session saved, or raises ValueError with the reason why that is impossible."""
    if threads.running:
        names = ", ".join(sorted(name_of(handle) for handle in threads.running.values()))
        raise ValueError(f"a thread cannot be saved, and these have not ended: {names}")
    for one in list(exchange.opened):
        if one.number is not None:
            raise ValueError(f"a connection cannot be saved, and one to {one.url} is open")
    if bridge.foreign():
        gc.collect()  # garbage may hold them; for nothing else, as it touches all the memory
        if bridge.foreign():
            raise ValueError(foreign())
    bridge.save(waits.timers())


def rehearse():
    """Looks whether the session can be saved, for nobody."""
    if not bridge.foreign():
        bridge.rehearse_save()


def name_of(handle):
    import threading

    for thread in threading.enumerate():
        if thread.ident == handle.ident:
            return repr(thread.name)
    return f"number {handle.number}"


def foreign():
    """Says which object of JavaScript there is, and where it is held."""
    for place, root in roots():
        found = search(root)
        if found is not None:
            return (
                f"an object of JavaScript cannot be saved, and {place} holds one: {shown(found)}; "
                "delete it, or convert it with `to_py()`"
            )
    return "an object of JavaScript cannot be saved, and something that no variable names holds one"


def roots():
    """The variables of modules, those of the program first, and the tasks."""
    modules = dict(sys.modules)
    main = modules.pop("__main__", None)
    for name, module in [("__main__", main), *modules.items()]:
        if isinstance(module, types.ModuleType):
            for variable, value in list(vars(module).items()):
                yield f"`{variable}` of the module `{name}`", value
    for task in asyncio.all_tasks(waits.cells):
        yield f"the task `{task.get_name()}`", task


def search(root):
    asked, seen = [root], set()
    while asked and len(seen) < MAX_LOOKED_AT:
        value = asked.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, JsProxy):
            if not bridge.is_kept(value):
                return value
        elif not isinstance(value, SKIPPED) and not is_namespace(value):
            asked += gc.get_referents(value)
    return None


def is_namespace(value):
    """Whether it is the variables of a module, which are looked at on their own."""
    return type(value) is dict and "__builtins__" in value


def shown(value):
    try:
        return repr(value)[:100]
    except Exception:
        return "an object"
