"""Modules of the host's functions. What is in one is asked for when the guest looks for it."""

import difflib
import sys
import types
from importlib.machinery import ModuleSpec

import _isolet_failures as failures
import _isolet_imports as imports
import _isolet_tools as tools
import _isolet_variables as variables
import _isolet_waits as waits

# What others look for in any object, and no tool is called. A look would load the module.
PROBED = ("_repr_", "_ipython_")
CLOSE = 3  # names that are told with one that is missing

hosts = {}  # the modules, by the names that the host knows them by
names = {}  # the functions of those that were listed, by the same


class ToolModule(types.ModuleType):
    """A module whose functions are made when they are looked up."""

    def __init__(self, name, host_name, doc):
        super().__init__(name, doc or None)
        self.__spec__ = ModuleSpec(name, None)
        hosts[host_name] = self

    def __getattr__(self, name):
        if name == "__all__":
            return dir(self)
        if name[:2] == "__" == name[-2:] or name.startswith(PROBED):
            raise missing(self.__name__, name, ())
        return function_of(name_of(self), name)

    def __dir__(self):
        return sorted(names_of(name_of(self)))


class Helper(types.ModuleType):
    """Finds the modules and their functions."""

    def __init__(self, name):
        super().__init__(name, "Finds the host's modules and their functions.")
        self.__spec__ = ModuleSpec(name, None)
        self.__all__ = ["ToolError", "call", "search", "servers"]
        self.ToolError = failures.ToolError
        for function, aio in ((servers, servers_aio), (search, search_aio), (call, call_aio)):
            setattr(self, function.__name__, function)
            function.__module__ = aio.__module__ = name
            function.aio = aio
            aio.__name__, aio.__qualname__ = function.__name__, f"{function.__name__}.aio"
            aio.__doc__ = function.__doc__
            tools.awaitable[function] = aio

    def __getattr__(self, name):
        if name in hosts:
            return hosts[name]
        raise missing(self.__name__, name, [*hosts, *self.__all__])

    def __dir__(self):
        return sorted([*hosts, *self.__all__])


variables.HIDDEN |= {ToolModule, Helper}


def define(command, namespace):
    """Makes the modules, without a look into them."""
    helper = command["helper"]
    made = {guest: ToolModule(guest, name, doc) for name, guest, doc in command["modules"]}
    made[helper] = Helper(helper)
    for name, module in made.items():
        sys.modules[name] = module
        imports.MODULES[name] = lambda module=module: module  # when guest code has removed it
        tools.functions[name] = namespace[name] = module
    if "ToolError" not in namespace:
        tools.functions["ToolError"] = namespace["ToolError"] = failures.ToolError


def name_of(module):
    return next((name for name, one in hosts.items() if one is module), "")


def names_of(host_name):
    if host_name not in names:
        names[host_name] = tools.call(f"{host_name}.?names", {})
    return names[host_name]


def function_of(host_name, name):
    """A function of a module, as made at the first look."""
    module = hosts[host_name]
    made = vars(module)
    if name not in made:
        spec = tools.call(f"{host_name}.?tool", {"name": name})
        if name not in names.get(host_name, (name,)):
            del names[host_name]  # there are other functions now
        if spec is None:
            raise missing(module.__name__, name, names_of(host_name))
        shown = f"{module.__name__}.{name}"
        function = tools.make_tool(spec, f"{host_name}.{name}", shown, module.__name__)
        made.setdefault(name, function)  # another thread may have been as fast
    return made[name]


def missing(module, name, known):
    close = difflib.get_close_matches(name, known, CLOSE)
    hint = f"; close to it: {', '.join(close)}" if close else ""
    return AttributeError(f"module '{module}' has no attribute '{name}'{hint}")


def servers():
    """The names of the modules."""
    return list(hosts)


async def servers_aio():
    return servers()


def search(query, server=None, limit=10):
    """The functions that fit the words, best first: dicts of name, signature and doc."""
    return tools.call("?search", {"query": query, "server": server, "limit": limit})


async def search_aio(query, server=None, limit=10):
    arguments = {"query": query, "server": server, "limit": limit}
    return await tools.call_async("?search", arguments)


def call(server, tool, arguments=None):
    """Calls a function of a module by its name, with a dict of arguments."""
    function = named(server, tool)
    made = function(**dict(arguments or {}))
    return waits.wait_for(made) if function is function.aio else made


async def call_aio(server, tool, arguments=None):
    return await named(server, tool).aio(**dict(arguments or {}))


def named(server, tool):
    if server not in hosts:
        known = ", ".join(hosts)
        raise ValueError(f"there is no server {server!r}, there are {known}")
    return function_of(server, tool)


def patch_pydoc(pydoc):
    """Has `help()` list a module's functions by a line or two each."""
    document = pydoc.TextDoc.docmodule

    def docmodule(self, thing, name=None, mod=None):
        if type(thing) is not ToolModule:
            return document(self, thing, name, mod)
        module = thing.__name__
        title = f"{module} - {thing.__doc__}" if thing.__doc__ else module
        text = self.section("NAME", title)
        lines = []
        for signature, doc in tools.call(f"{name_of(thing)}.?help", {}):
            lines.append(signature)
            if doc:
                lines.append(f"    {doc}")
        return text + self.section("FUNCTIONS", "\n".join(lines))

    pydoc.TextDoc.docmodule = docmodule
